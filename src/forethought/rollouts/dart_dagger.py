"""Expert data that shows what follows a mistake: action noise (DART) and DAgger."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from forethought.configs.parts import ResponseFormat
from forethought.environments.contract import Environment, ExpertAction, Past, Prompter
from forethought.environments.slots import facts_in
from forethought.errors import ConfigError
from forethought.prompts.history import past_step, with_history
from forethought.prompts.responses import asks_for_thoughts, strict_format, write_response
from forethought.rollouts.scripted import Respond, actions_to_try, expert_response, written
from forethought.types import Observation, Step, Trajectory


class NoisyExpert:
    """Acts as the environment's expert, but for a share of the steps, so that one learns how an
    episode goes on after a mistake.

    DART (Laskey et al., 2017), with noise that does not depend on the state. In these steps it
    tries, uniformly, any action that the episode has offered so far, so that some are not
    possible any more.
    """

    def __init__(self, share: float, response_format: ResponseFormat, *, seed: int) -> None:
        self._share = share
        self._expert = expert_response(response_format)
        self._randomness = np.random.Generator(np.random.Philox(key=seed))
        self._offered: dict[str, None] = {}
        self._slips: list[bool] = []

    def __call__(self, environment: Environment, observation: Observation) -> str:
        """The text of the next answer."""
        self._offered.update(dict.fromkeys(actions_to_try(environment, observation)))
        is_noise = bool(self._randomness.random() < self._share)
        text = self._slip() if is_noise else self._expert(environment, observation)
        self._slips.append(is_noise)  # of an answer; where the expert fails, there is none
        return text

    def end_episode(self) -> list[bool]:
        """Which of the episode's answers were slips; the next answer begins another one."""
        slips, self._slips, self._offered = self._slips, [], {}
        return slips

    def _slip(self) -> str:
        offered = tuple(self._offered)
        action = offered[int(self._randomness.integers(len(offered)))]
        return write_response(ExpertAction(action, ()), "action_only")


def corrected(
    played: Trajectory, environment: Environment, prompter: Prompter, respond: Respond
) -> Iterator[Step]:
    """Plays an episode again, and asks the expert in every state that it passes: also in those
    that only the policy's own mistakes lead to (DAgger: Ross et al., 2011).

    Args:
        played: by whomever, from its beginning.
        answer: the expert's.

    Returns:
        The steps with the expert's answers in place of the player's; a state that the episode
        passes several times, as in a loop, gives one. What followed is the player's doing, so
        such steps are for SFT alone.

    Raises:
        ConfigError: the episode takes another course here: it was played in another environment,
        with
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
            completion = written(respond(environment, observation))
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
