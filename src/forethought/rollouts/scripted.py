"""Episodes played without a model: by the world's own expert, or at random."""

from collections.abc import Callable, Iterable, Iterator
from time import perf_counter

import numpy as np

from forethought.config_parts import AnswerFormat
from forethought.environments.contract import Advice, Environment, WithDataPolicy
from forethought.prompts.answers import parse_answer, write_answer
from forethought.prompts.contract import Prompter
from forethought.types import Completion, FinishReason, Observation, Prompt, Step, Trajectory

Answer = Callable[[Environment, Observation], str]
"""The text that a scripted agent gives as its completion."""


def expert_answer(answer_format: AnswerFormat) -> Answer:
    """Answers as the world's expert would, thoughts included unless left out."""
    return lambda environment, observation: write_answer(environment.expert(), answer_format)


def random_answer(seed: int) -> Answer:
    """Answers with an action drawn uniformly from those that may be tried.

    Worlds whose actions are open text and unlisted are answered from `legal_actions`.
    """
    randomness = np.random.Generator(np.random.Philox(key=seed))

    def answer(environment: Environment, observation: Observation) -> str:
        choices = (
            observation.admissible_actions or environment.actions or environment.legal_actions()
        )
        action = choices[int(randomness.integers(len(choices)))]
        return write_answer(Advice(action, ()), "action_only")

    return answer


def data_answer(
    world: WithDataPolicy, skill: float, answer_format: AnswerFormat, *, seed: int
) -> Answer:
    """Answers one episode of this instance as the world's data policy does.

    Args:
        seed: of the episode's draws; another episode takes another one.

    Raises:
        ConfigError: a skill that the world's data policy does not have.
    """
    player = world.data_policy(skill, np.random.Generator(np.random.Philox(key=seed)))
    return lambda environment, observation: write_answer(player(), answer_format)


def play(
    environment_id: str,
    environment: Environment,
    prompter: Prompter,
    answer: Answer,
    seeds: Iterable[int],
) -> Iterator[Trajectory]:
    """Plays whole episodes, one after the other."""
    for seed in seeds:
        observation = environment.restart(seed)
        steps: list[Step] = []
        while not steps or not (steps[-1].terminated or steps[-1].truncated):
            step = _step(environment, prompter, observation, answer(environment, observation))
            steps.append(step)
            observation = environment.observation()
        yield Trajectory(
            environment_id=environment_id,
            seed=seed,
            task_type=observation.task_type,
            first_step=0,
            steps=tuple(steps),
            bootstrap_value=None,
            success=environment.success(),
            measures=environment.measures(),
        )


def _step(
    environment: Environment, prompter: Prompter, observation: Observation, text: str
) -> Step:
    completion = Completion((), (), (), text, FinishReason.STOP, temperature=1.0)
    action = parse_answer(completion, observation.admissible_actions or environment.actions)
    started = perf_counter()
    transition = environment.act(action.action)
    return Step(
        prompt=Prompt(prompter.messages(observation), ()),
        completion=completion,
        action=action,
        reward=transition.reward,
        terminated=transition.terminated,
        truncated=transition.truncated,
        value=None,
        policy_version=0,
        state_key=observation.state_key,
        duration_s=perf_counter() - started,
    )
