"""Episodes played without a model: by the environment's own expert, or at random."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter

import numpy as np

from forethought.configs.parts import ResponseFormat
from forethought.environments.check_values import (
    check_observation,
    check_outcome,
    checked_transition,
)
from forethought.environments.contract import (
    DataPolicy,
    Environment,
    ExpertAction,
    Past,
    Prompter,
    WithDataPolicy,
    expert_of,
)
from forethought.environments.guard import TIMEOUT_S, Guard
from forethought.environments.slots import Factory, Failed, facts_in, failed
from forethought.errors import EnvironmentUnusableError
from forethought.prompts.history import HistoryPrompter, past_step, with_history
from forethought.prompts.responses import asks_for_thoughts, strict_format, write_response
from forethought.rollouts.collector import MAX_FAILURES
from forethought.rollouts.slot import failed_episode
from forethought.types import (
    Completion,
    FinishReason,
    Metric,
    Observation,
    Prompt,
    Step,
    Trajectory,
    progress_in,
)

Respond = Callable[[Environment, Observation], str]
"""The text that a scripted agent gives as its completion."""


def expert_response(response_format: ResponseFormat) -> Respond:
    """Answers as the environment's expert would, thoughts included unless left out."""
    return lambda environment, observation: write_response(
        expert_of(environment).expert(), response_format
    )


def written(text: str) -> Completion:
    """An answer that no model wrote."""
    return Completion((), (), (), text, FinishReason.STOP, temperature=1.0)


def actions_to_try(environment: Environment, observation: Observation) -> Sequence[str]:
    """What an agent may try now: as the environment lists it, else what is legal."""
    return observation.admissible_actions or environment.actions or environment.legal_actions()


def random_response(seed: int) -> Respond:
    """Answers with an action drawn uniformly from those that may be tried.

    Environments whose actions are open text and unlisted are answered from `legal_actions`.
    """
    randomness = np.random.Generator(np.random.Philox(key=seed))

    def respond(environment: Environment, observation: Observation) -> str:
        choices = actions_to_try(environment, observation)
        action = choices[int(randomness.integers(len(choices)))]
        return write_response(ExpertAction(action, ()), "action_only")

    return respond


class DataResponse:
    """Answers as the environment's data policy does, with draws of their own for every episode."""

    def __init__(self, skill: float, response_format: ResponseFormat) -> None:
        self._skill = skill
        self._format: ResponseFormat = response_format
        self._seed = 0
        self._environment: Environment | None = None
        self._player: DataPolicy | None = None

    def begin(self, seed: int) -> None:
        """The next answer is the first of an episode, whose draws are those of the seed."""
        self._seed, self._environment = seed, None

    def __call__(self, environment: Environment, observation: Observation) -> str:
        """The text of the next answer.

        Raises:
            ConfigError: the environment's data policy has no such skill.
        """
        if environment is not self._environment or self._player is None:
            assert isinstance(environment, WithDataPolicy)
            randomness = np.random.Generator(np.random.Philox(key=self._seed))
            self._player = environment.data_policy(self._skill, randomness)
            self._environment = environment
        return write_response(self._player(), self._format)


def play(
    environment_id: str,
    environment: Environment | Factory,
    prompter: Prompter,
    respond: Respond,
    seeds: Iterable[int],
    *,
    timeout_s: float = TIMEOUT_S,
) -> Iterator[Trajectory]:
    """Plays whole episodes, one after the other.

    When the environment raises an exception, is silent, or gives a value that nobody could learn
    from, a fresh instance gets one try at the same place, by repeating the answers. Then the
    episode is a failure without steps, and the next one begins.

    Args:
        environment: what builds the environment; or an instance, which is reset in place of a
            fresh one.
        timeout_s: what one call of the environment may take, seconds.

    Raises:
        EnvironmentUnusableError: the environment failed in `MAX_FAILURES` episodes in a row, and in
            one more.
    """
    told, failures = with_history(prompter), 0
    guard = Guard(timeout_s)
    host = _Host(environment, guard)
    guard.open()
    try:
        for seed in seeds:
            said: list[str] = []
            outcome = _attempt(environment_id, host, told, respond, seed, said)
            if isinstance(outcome, Failed):
                outcome = _attempt(environment_id, host, told, respond, seed, said)
            if isinstance(outcome, Failed):
                failures += 1
                if failures > MAX_FAILURES:
                    raise EnvironmentUnusableError(
                        f"{environment_id}: {failures} episodes in a row could not be played; "
                        f"the last one: {outcome.failure}: {outcome.message}"
                    )
                yield failed_episode(environment_id, seed, outcome.failure)
            else:
                failures = 0
                yield outcome
    finally:
        host.close()
        guard.close()


class _Host:
    """The instance that is played on, and its guard."""

    def __init__(self, environment: Environment | Factory, guard: Guard) -> None:
        self._guard = guard
        self._factory = environment if callable(environment) else None
        self._environment = environment() if callable(environment) else environment

    def environment(self) -> Environment:
        """A fresh one where the last one was closed."""
        if self._environment is None:
            assert self._factory is not None
            self._environment = self._factory()
        return self._environment

    def close(self) -> None:
        """Lets go of what was built here; what it raises on leaving concerns nobody."""
        if self._factory is not None and self._environment is not None:
            environment, self._environment = self._environment, None
            with suppress(Exception, _EnvironmentError), self.executing():
                environment.close()

    @contextmanager
    def executing(self, *, builds: bool = False) -> Generator[None]:
        """Code of the environment's own in this block: what it raises is its failure.

        Raises:
            _EnvironmentError: it failed.
            BaseException: a person asked the process to end.
        """
        try:
            with self._guard.command(builds=builds):
                yield
        except BaseException as error:
            if self._guard.interrupt is not None:
                raise
            raise _EnvironmentError(error) from error


class _EnvironmentError(Exception):
    """What an environment raised. All other exceptions are bugs, and pass through."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(type(cause).__name__)
        self.cause = cause


def _attempt(
    environment_id: str,
    host: _Host,
    prompter: HistoryPrompter,
    respond: Respond,
    seed: int,
    said: list[str],
) -> Trajectory | Failed:
    try:
        with host.executing(builds=True):
            environment = host.environment()
        return _episode(environment_id, environment, host, prompter, respond, seed, said)
    except _EnvironmentError as error:
        host.close()
        return failed(0, error.cause, where=f"seed {seed}: ")


def _episode(
    environment_id: str,
    environment: Environment,
    host: _Host,
    prompter: HistoryPrompter,
    respond: Respond,
    seed: int,
    said: list[str],
) -> Trajectory:
    """
    Args:
        said: the answers so far, which are repeated before others are asked for; those are added.
    """
    with host.executing():
        observation = environment.reset(seed)
        check_observation(observation)
    steps: list[Step] = []
    past: list[Past] = []
    while not steps or not (steps[-1].terminated or steps[-1].truncated):
        if len(said) == len(steps):
            with host.executing():
                said.append(respond(environment, observation))
        step = _step(environment, host, prompter, observation, past, said[len(steps)])
        steps.append(step)
        choices = observation.admissible_actions or environment.actions
        past.append(past_step(observation, step.action.action, choices))
        with host.executing():
            observation = environment.observation()
            check_observation(observation)
    with host.executing():
        success, metrics = _outcome(environment)
    return Trajectory(
        environment_id=environment_id,
        seed=seed,
        task_type=observation.task_type,
        first_step=0,
        steps=tuple(steps),
        bootstrap_value=None,
        success=success,
        metrics=metrics,
    )


def _outcome(environment: Environment) -> tuple[bool, tuple[Metric, ...]]:
    success, metrics = environment.success(), environment.metrics()
    check_outcome(success, metrics)
    return success, metrics


def _step(
    environment: Environment,
    host: _Host,
    prompter: HistoryPrompter,
    observation: Observation,
    past: Sequence[Past],
    text: str,
) -> Step:
    completion = written(text)
    choices = observation.admissible_actions or environment.actions
    action = prompter.parse(completion, choices)
    fields = prompter.response_fields
    started = perf_counter()
    with host.executing():
        facts = facts_in(environment, text if asks_for_thoughts(fields) else None)
        transition = checked_transition(environment.step(action.action))
        _, metrics = _outcome(environment)
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
        progress=progress_in(metrics),
        thought_facts=facts,
        strict_format=strict_format(text, fields),
    )
