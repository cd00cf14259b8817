"""What the expert would have answered where a policy went.

Who imitates the expert's episodes alone never sees the states that its own mistakes lead to.
Whoever is told the right answer to these learns to get out of them (DAgger: Ross et al., 2011).
"""

from collections.abc import Iterator
from dataclasses import replace

from forethought.environments.contract import Environment, Past, Prompter
from forethought.environments.slots import facts_in
from forethought.errors import ConfigError
from forethought.prompts.history import past_step, with_history
from forethought.prompts.responses import asks_for_thoughts, strict_format
from forethought.rollouts.scripted import Answer, written
from forethought.types import Step, Trajectory


def corrected(
    played: Trajectory, environment: Environment, prompter: Prompter, answer: Answer
) -> Iterator[Step]:
    """Plays an episode again, and asks the expert in every state that it passes.

    Args:
        played: by whomever, from its beginning.
        answer: the expert's.

    Returns:
        The steps with the expert's answers in place of the player's; a state that the episode
        passes several times, as in a loop, gives one. What followed is the player's doing, so
        such steps are for imitation and for nothing else.

    Raises:
        ConfigError: the episode takes another course here: it was played in another world, with
            other options or by other prompts.
    """
    if not played.steps:
        return
    told = with_history(prompter)
    observation = environment.reset(played.seed)
    past: list[Past] = []
    met: set[str] = set()
    for number, step in enumerate(played.steps):
        key = told.state_key(observation, past)
        if played.first_step or key != step.state_key:
            raise ConfigError(
                f"corrections: the episode of seed {played.seed} is not the one that is played "
                f"here, from step {number} on — expected whole episodes of this environment, "
                "with these options and prompts"
            )
        choices = observation.admissible_actions or environment.actions
        if key not in met:
            met.add(key)
            completion = written(answer(environment, observation))
            fields = told.response_fields
            thoughts = completion.text if asks_for_thoughts(fields) else None
            yield replace(
                step,
                completion=completion,
                action=told.parse(completion, choices),
                thought_facts=facts_in(environment, thoughts),
                strict_format=strict_format(completion.text, fields),
            )
        environment.step(step.action.action)
        past.append(past_step(observation, step.action.action, choices))
        observation = environment.observation()
