"""Episodes without a model: what an environment cannot play to its end is lost, and counted."""

import signal
from typing import ClassVar

import pytest

from forethought.environments.bandit import Bandit
from forethought.environments.contract import ExpertAction, Prompter, Transition
from forethought.environments.slots import Factory
from forethought.errors import EnvironmentUnusableError
from forethought.prompts.prompters import PlainPrompter
from forethought.rollouts.scripted import expert_response, play
from forethought.types import EnvironmentFailure, Message, Observation, Trajectory
from tests.unit.algorithms.stairs import Stairs


class SilenceError(EnvironmentUnusableError, TimeoutError):
    """A program that the environment needs does not answer."""


class FrailBandit(Bandit):
    """Fails in the episodes of these seeds."""

    crashes: tuple[int, ...] = ()
    hangs: tuple[int, ...] = ()
    seed = 0

    def reset(self, seed: int) -> Observation:
        self.seed = seed
        return super().reset(seed)

    def step(self, action: str) -> Transition:
        if self.seed in self.crashes:
            raise EnvironmentUnusableError("it has ended")
        if self.seed in self.hangs:
            raise SilenceError("it is silent")
        return super().step(action)


class FrailStairs(Stairs):
    """Instances fail at these moments of their lives: building is 0, then every call counts."""

    built: ClassVar[list["FrailStairs"]]
    failing: ClassVar[dict[int, int]]
    """Number of the instance, and of the call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.is_closed = -1, False
        self.built.append(self)
        self._call()

    def _call(self) -> None:
        self.calls += 1
        if self.failing.get(len(self.built) - 1) == self.calls:
            raise OSError("no such device\nat all")

    def reset(self, seed: int) -> Observation:
        self._call()
        return super().reset(seed)

    def step(self, action: str) -> Transition:
        self._call()
        return super().step(action)

    def expert(self) -> ExpertAction:
        self._call()
        return super().expert()

    def close(self) -> None:
        self.is_closed = True
        raise OSError("gone")


@pytest.fixture
def frail() -> type[FrailStairs]:
    FrailStairs.built, FrailStairs.failing = [], {}
    return FrailStairs


def climbed(
    environment: Factory, episodes: int, prompter: Prompter | None = None
) -> list[Trajectory]:
    prompter = prompter or PlainPrompter(("up", "down"), "action_only")
    return list(
        play("Stairs", environment, prompter, expert_response("action_only"), range(episodes))
    )


def played(environment: FrailBandit, episodes: int) -> list[Trajectory]:
    prompter = PlainPrompter(environment.actions, "action_only")
    return list(
        play("Bandit", environment, prompter, expert_response("action_only"), range(episodes))
    )


def test_a_lost_episode_is_a_failure_without_steps() -> None:
    environment = FrailBandit()
    environment.crashes, environment.hangs = (1,), (2,)
    found = played(environment, 4)
    assert [trajectory.failure for trajectory in found] == [
        None,
        EnvironmentFailure.CRASH,
        EnvironmentFailure.TIMEOUT,
        None,
    ]
    assert [len(trajectory.steps) for trajectory in found] == [1, 0, 0, 1]
    assert [trajectory.seed for trajectory in found] == [0, 1, 2, 3]


def test_too_many_in_a_row_are_the_end() -> None:
    environment = FrailBandit()
    environment.crashes = (0, 1, 2, 4, 5, 6)
    assert len(played(environment, 7)) == 7
    environment.crashes = (0, 1, 2, 3)
    with pytest.raises(
        EnvironmentUnusableError,
        match=r"4 episodes in a row .* crash: seed 3: EnvironmentUnusableError: it has ended$",
    ):
        played(environment, 4)


def test_a_few_that_are_all_lost_are_counted() -> None:
    """They may be the rest of a longer collection."""
    environment = FrailBandit()
    environment.crashes = (0, 1)
    assert [t.failure for t in played(environment, 2)] == [EnvironmentFailure.CRASH] * 2


@pytest.mark.parametrize("call", [1, 2, 3, 4, 7])
def test_a_fresh_instance_goes_on_at_the_same_place(frail: type[FrailStairs], call: int) -> None:
    """An episode is a restart, then expert_action and action three times."""
    undisturbed = climbed(Stairs, 2)
    frail.failing = {0: call}
    found = climbed(frail, 2)
    assert len(frail.built) == 2
    assert all(instance.is_closed for instance in frail.built)
    for one, other in zip(undisturbed, found, strict=True):
        assert [step.state_key for step in one.steps] == [step.state_key for step in other.steps]
        assert (other.failure, other.success) == (None, True)


def test_no_answer_is_asked_for_twice(frail: type[FrailStairs]) -> None:
    """Two were given, and the third not; the fresh one repeats two and is asked for the third."""
    frail.failing = {0: 6}
    climbed(frail, 1)
    first, second = frail.built
    assert (first.calls, second.calls) == (6, 1 + 2 + 2)


def test_a_second_failure_loses_the_episode_and_no_other(frail: type[FrailStairs]) -> None:
    frail.failing = {0: 3, 1: 2}
    found = climbed(frail, 3)
    assert [t.failure for t in found] == [EnvironmentFailure.CRASH, None, None]
    assert [len(t.steps) for t in found] == [0, 3, 3]


def test_an_instance_that_cannot_be_built_again_counts_as_well(frail: type[FrailStairs]) -> None:
    frail.failing = {0: 3, 1: 0}
    assert [t.failure for t in climbed(frail, 2)] == [EnvironmentFailure.CRASH, None]
    frail.built.clear()
    frail.failing = {0: 0}
    with pytest.raises(OSError, match="no such device"):
        climbed(frail, 1)


def test_what_is_said_of_the_last_failure_is_one_line(frail: type[FrailStairs]) -> None:
    frail.failing = dict.fromkeys(range(8), 1)
    with pytest.raises(EnvironmentUnusableError, match=r"crash: seed 3: OSError: no such device$"):
        climbed(frail, 9)


@pytest.mark.usefixtures("hears_sigint")
def test_a_bug_of_ours_and_ctrl_c_are_no_failures() -> None:
    class Speechless:
        def messages(self, observation: Observation) -> tuple[Message, ...]:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        climbed(Stairs, 1, Speechless())
    environment = FrailBandit()

    def interrupted(seed: int) -> Observation:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError

    environment.reset = interrupted
    with pytest.raises(KeyboardInterrupt):
        played(environment, 1)
