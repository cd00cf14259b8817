"""What is asked of a hosted environment, its results, and what must be remembered of it."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter

from forethought.environments.check_values import (
    check_observation,
    check_outcome,
    checked_transition,
)
from forethought.environments.contract import (
    Environment,
    ExpertAction,
    Transition,
    WithExpert,
    WithThoughtFacts,
)
from forethought.environments.guard import SilenceError, in_one_line
from forethought.types import EnvironmentFailure, Metric, Observation, ThoughtFacts

Factory = Callable[[], Environment]
"""Builds one instance. For worker processes it must be picklable, for example
`functools.partial(make_environment, "NumberLine", image_size=64)`."""


@dataclass(frozen=True)
class Reset:
    """Begin the episode that the seed stands for."""

    seed: int


@dataclass(frozen=True)
class Act:
    """Execute one action in the slot's present episode."""

    action: str
    response: str | None = None
    """The thoughts and action that it was taken from, where their facts are wanted."""


@dataclass(frozen=True)
class Replay:
    """Begin an episode and repeat actions: how a lost episode is restored."""

    seed: int
    actions: tuple[str, ...]
    response: str | None = None
    """What the last action was taken from, as in `Act`."""


Command = Reset | Act | Replay


@dataclass(frozen=True, eq=False)
class Observed:
    """The state that a command led to."""

    slot: int
    observation: Observation
    transition: Transition | None
    """What the last action did; None where none was executed."""
    legal_actions: tuple[str, ...]
    """Empty once the episode is over."""
    expert_action: ExpertAction | None
    """The expert's, where the runner was asked for it and the episode goes on."""
    success: bool
    metrics: tuple[Metric, ...]
    duration_s: float
    """Wall-clock seconds in the environment."""
    thought_facts: ThoughtFacts | None = None
    """Facts about the response that the command named, where the environment offers them."""


@dataclass(frozen=True)
class Failed:
    """The command could not be executed; the slot needs a `Reset` or a `Replay`."""

    slot: int
    failure: EnvironmentFailure
    message: str
    """One line on what happened."""


Result = Observed | Failed


class SlotHost:
    """One instance, replaced by a fresh one whenever it raises an exception, be it `SystemExit`
    or `KeyboardInterrupt`, or gives a value that nobody could learn from."""

    def __init__(self, factory: Factory, with_expert: bool) -> None:
        self._factory = factory
        self._with_expert = with_expert
        self._environment: Environment | None = factory()
        self.actions = self._environment.actions
        self._seed: int | None = None
        self._steps = 0

    @property
    def is_built(self) -> bool:
        """Whether the next command finds an instance."""
        return self._environment is not None

    def execute(self, slot: int, command: Command) -> Result:
        """Executes a command on the instance, building one where there is none; never raises."""
        started = perf_counter()
        try:
            if self._environment is None:
                self._seed = None
                self._environment = self._factory()
            return self._execute(self._environment, slot, command, started)
        except BaseException as error:
            # What a person's Ctrl-C raised is raised once more by the guard around this.
            return self.lose(slot, error)

    def lose(self, slot: int, error: BaseException) -> "Failed":
        """Gives up the instance, and says at which step of which episode."""
        self.close()
        where = "" if self._seed is None else f"seed {self._seed}, step {self._steps}: "
        return failed(slot, error, where=where)

    def close(self) -> None:
        """Lets the instance go; what it raises on leaving concerns nobody."""
        environment, self._environment = self._environment, None
        if environment is not None:
            with suppress(Exception, SystemExit, KeyboardInterrupt):
                environment.close()

    def _execute(
        self, environment: Environment, slot: int, command: Command, started: float
    ) -> Observed:
        transition: Transition | None = None
        facts: ThoughtFacts | None = None
        match command:
            case Reset(seed):
                observation = self._reset(environment, seed)
            case Act(action, response):
                facts = facts_in(environment, response)
                transition = self._act(environment, action)
                observation = environment.observation()
            case Replay(seed, actions, response):
                observation = self._reset(environment, seed)
                for index, action in enumerate(actions, start=1):
                    if index == len(actions):
                        facts = facts_in(environment, response)
                    transition = self._act(environment, action)
                if actions:
                    observation = environment.observation()
        check_observation(observation)
        success, metrics = environment.success(), environment.metrics()
        check_outcome(success, metrics)
        goes_on = transition is None or not (transition.terminated or transition.truncated)
        return Observed(
            slot=slot,
            observation=observation,
            transition=transition,
            legal_actions=environment.legal_actions(),
            expert_action=self._expert_action(environment) if goes_on else None,
            success=success,
            metrics=metrics,
            duration_s=perf_counter() - started,
            thought_facts=facts,
        )

    def _expert_action(self, environment: Environment) -> ExpertAction | None:
        if self._with_expert and isinstance(environment, WithExpert):
            return environment.expert()
        return None

    def _reset(self, environment: Environment, seed: int) -> Observation:
        self._seed, self._steps = seed, 0
        return environment.reset(seed)

    def _act(self, environment: Environment, action: str) -> Transition:
        self._steps += 1
        return checked_transition(environment.step(action))


def facts_in(environment: Environment, response: str | None) -> ThoughtFacts | None:
    """What a response claims about the environment's present state, where that is wanted and
    the environment knows."""
    if response is None or not isinstance(environment, WithThoughtFacts):
        return None
    return environment.thought_facts(response)


def failed(slot: int, error: BaseException, *, where: str = "") -> Failed:
    """What came of a command when an environment raised an exception.

    Args:
        where: in its episode, as the beginning of the message.
    """
    return Failed(slot, failure_of(error), f"{where}{in_one_line(error)}")


def failure_of(error: BaseException) -> EnvironmentFailure:
    """Timeout where the environment was silent, or raised `TimeoutError` since its own program was;
    otherwise crash."""
    is_silence = isinstance(error, TimeoutError | SilenceError)
    return EnvironmentFailure.TIMEOUT if is_silence else EnvironmentFailure.CRASH


class SlotRecord:
    """What is remembered of one slot: enough to refuse misuse and to restore an episode."""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.outstanding: Command | None = None
        self.is_stale = False
        """The instance that held the episode is gone; the next action needs a replay."""
        self._seed: int | None = None
        self._actions: tuple[str, ...] = ()
        self._is_over = False

    def accept(self, command: Command) -> None:
        """Takes note of a command.

        Raises:
            RuntimeError: the last one is not settled, or an action has no episode that goes on.
        """
        if self.outstanding is not None:
            raise RuntimeError(f"slot {self.slot} has not executed {self.outstanding} yet")
        if isinstance(command, Act) and self._seed is None:
            raise RuntimeError(f"slot {self.slot} has no episode — send Reset or Replay first")
        if isinstance(command, Act) and self._is_over:
            raise RuntimeError(f"the episode of slot {self.slot} is over — send Reset first")
        self.outstanding = command

    def order(self) -> Command:
        """The outstanding command as an instance must get it: an action that finds a
        fresh instance becomes a replay of the episode."""
        command = self.outstanding
        if command is None:
            raise RuntimeError(f"slot {self.slot} has nothing to do")
        if isinstance(command, Act) and self.is_stale and self._seed is not None:
            return Replay(self._seed, (*self._actions, command.action), command.response)
        return command

    def settle(self, result: Result) -> None:
        """Takes note of what the outstanding command led to."""
        command, self.outstanding = self.outstanding, None
        if isinstance(result, Failed):
            self._seed = None
            return
        match command:
            case Reset(seed):
                self._seed, self._actions = seed, ()
            case Replay(seed, actions, _):
                self._seed, self._actions = seed, actions
            case Act(action, _):
                self._actions += (action,)
            case None:
                raise RuntimeError(f"slot {self.slot} has a result without a command")
        last = result.transition
        self._is_over = last is not None and (last.terminated or last.truncated)
        self.is_stale = False


class Ledger:
    """All slots of a runner, and the results that its caller has not yet collected."""

    def __init__(self, slots: int) -> None:
        if slots < 1:
            raise ValueError(f"a runner needs at least one slot, got {slots}")
        self._records = [SlotRecord(slot) for slot in range(slots)]
        self._results: dict[int, Result] = {}

    def __len__(self) -> int:
        return len(self._records)

    @property
    def has_results(self) -> bool:
        """Whether anything can be collected."""
        return bool(self._results)

    def accept(self, slot: int, command: Command) -> Command:
        """Takes note of a command and returns what the instance must execute.

        Raises:
            RuntimeError: the caller's mistake: the last command was not executed or its
                result not collected, or an action without an episode that goes on.
        """
        if slot in self._results:
            raise RuntimeError(f"the result of slot {slot} has not been received yet")
        self._records[slot].accept(command)
        return self.order(slot)

    def order(self, slot: int) -> Command:
        """The command that the instance must execute for the outstanding one."""
        return self._records[slot].order()

    def settle(self, result: Result) -> None:
        """Takes note of a result."""
        self._records[result.slot].settle(result)
        self._results[result.slot] = result

    def mark_stale(self, slots: tuple[int, ...]) -> None:
        """The instances of these slots are gone, and with them their episodes."""
        for slot in slots:
            self._records[slot].is_stale = True

    def require_business(self) -> None:
        """Raises:
        RuntimeError: no result is there or to come.
        """
        if not self._results and all(record.outstanding is None for record in self._records):
            raise RuntimeError("no command is outstanding")

    def collect(self) -> list[Result]:
        """The results so far, in the order of slots; each is given once."""
        results = [self._results[slot] for slot in sorted(self._results)]
        self._results.clear()
        return results
