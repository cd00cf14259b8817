"""Episodes played without a model: by the world's own expert, or at random."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter

import numpy as np

from forethought.config_parts import AnswerFormat
from forethought.environments.contract import Advice, Environment, WithDataPolicy
from forethought.environments.slots import failure_of
from forethought.errors import EnvironmentUnusableError
from forethought.prompts.answers import parse_answer, write_answer
from forethought.prompts.contract import Past, Prompter
from forethought.prompts.history import HistoryPrompter, behind, with_history
from forethought.rollouts.collector import MAX_FAILURES
from forethought.types import (
    Completion,
    EnvironmentFailure,
    FinishReason,
    Observation,
    Prompt,
    Step,
    Trajectory,
    progress_in,
)

Answer = Callable[[Environment, Observation], str]
"""The text that a scripted agent gives as its completion."""


def expert_answer(answer_format: AnswerFormat) -> Answer:
    """Answers as the world's expert would, thoughts included unless left out."""
    return lambda environment, observation: write_answer(environment.expert(), answer_format)


def written(text: str) -> Completion:
    """An answer that no model wrote."""
    return Completion((), (), (), text, FinishReason.STOP, temperature=1.0)


def actions_to_try(environment: Environment, observation: Observation) -> Sequence[str]:
    """What an agent may try now: as the world lists it, else what is legal."""
    return observation.admissible_actions or environment.actions or environment.legal_actions()


def random_answer(seed: int) -> Answer:
    """Answers with an action drawn uniformly from those that may be tried.

    Worlds whose actions are open text and unlisted are answered from `legal_actions`.
    """
    randomness = np.random.Generator(np.random.Philox(key=seed))

    def answer(environment: Environment, observation: Observation) -> str:
        choices = actions_to_try(environment, observation)
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
    """Plays whole episodes, one after the other.

    An episode that the world gives up is a failure without steps, and the next one begins.

    Raises:
        EnvironmentUnusableError: the world gave up `MAX_FAILURES` episodes in a row, and
            one more.
    """
    failures = 0
    for seed in seeds:
        try:
            trajectory = _episode(environment_id, environment, prompter, answer, seed)
        except EnvironmentUnusableError as error:
            failures += 1
            if failures > MAX_FAILURES:
                raise EnvironmentUnusableError(
                    f"{environment_id}: {failures} episodes in a row could not be played; "
                    f"the last one: {error}"
                ) from error
            trajectory = _given_up(environment_id, seed, failure_of(error))
        else:
            failures = 0
        yield trajectory


def _episode(
    environment_id: str,
    environment: Environment,
    prompter: Prompter,
    answer: Answer,
    seed: int,
) -> Trajectory:
    told = with_history(prompter)
    observation = environment.restart(seed)
    steps: list[Step] = []
    past: list[Past] = []
    while not steps or not (steps[-1].terminated or steps[-1].truncated):
        text = answer(environment, observation)
        step = _step(environment, told, observation, past, text)
        steps.append(step)
        choices = observation.admissible_actions or environment.actions
        past.append(behind(observation, step.action.action, choices))
        observation = environment.observation()
    return Trajectory(
        environment_id=environment_id,
        seed=seed,
        task_type=observation.task_type,
        first_step=0,
        steps=tuple(steps),
        bootstrap_value=None,
        success=environment.success(),
        measures=environment.measures(),
    )


def _given_up(environment_id: str, seed: int, failure: EnvironmentFailure) -> Trajectory:
    return Trajectory(
        environment_id=environment_id,
        seed=seed,
        task_type="",
        first_step=0,
        steps=(),
        bootstrap_value=None,
        success=False,
        measures=(),
        failure=failure,
    )


def _step(
    environment: Environment,
    prompter: HistoryPrompter,
    observation: Observation,
    past: Sequence[Past],
    text: str,
) -> Step:
    completion = written(text)
    action = parse_answer(completion, observation.admissible_actions or environment.actions)
    started = perf_counter()
    transition = environment.act(action.action)
    return Step(
        prompt=Prompt(prompter.messages(observation, past), ()),
        completion=completion,
        action=action,
        reward=transition.reward,
        terminated=transition.terminated,
        truncated=transition.truncated,
        value=None,
        policy_version=0,
        state_key=prompter.state_key(observation, past),
        duration_s=perf_counter() - started,
        progress=progress_in(environment.measures()),
    )
