"""Episodes without a model: what a world cannot play to its end is lost, and counted."""

import pytest

from forethought.environments.bandit import Bandit
from forethought.environments.contract import Transition
from forethought.errors import EnvironmentUnusableError
from forethought.prompts.plain import PlainPrompter
from forethought.rollouts.scripted import expert_answer, play
from forethought.types import EnvironmentFailure, Observation, Trajectory


class SilenceError(EnvironmentUnusableError, TimeoutError):
    """A program that the world needs does not answer."""


class FrailBandit(Bandit):
    """Fails in the episodes of these seeds."""

    crashes: tuple[int, ...] = ()
    hangs: tuple[int, ...] = ()
    seed = 0

    def restart(self, seed: int) -> Observation:
        self.seed = seed
        return super().restart(seed)

    def act(self, action: str) -> Transition:
        if self.seed in self.crashes:
            raise EnvironmentUnusableError("it has ended")
        if self.seed in self.hangs:
            raise SilenceError("it is silent")
        return super().act(action)


def played(world: FrailBandit, episodes: int) -> list[Trajectory]:
    prompter = PlainPrompter(world.actions, "action_only")
    return list(play("Bandit", world, prompter, expert_answer("action_only"), range(episodes)))


def test_a_lost_episode_is_a_failure_without_steps() -> None:
    world = FrailBandit()
    world.crashes, world.hangs = (1,), (2,)
    found = played(world, 4)
    assert [trajectory.failure for trajectory in found] == [
        None,
        EnvironmentFailure.CRASH,
        EnvironmentFailure.TIMEOUT,
        None,
    ]
    assert [len(trajectory.steps) for trajectory in found] == [1, 0, 0, 1]
    assert [trajectory.seed for trajectory in found] == [0, 1, 2, 3]


def test_too_many_in_a_row_are_the_end() -> None:
    world = FrailBandit()
    world.crashes = (0, 1, 2, 4, 5, 6)
    assert len(played(world, 7)) == 7
    world.crashes = (0, 1, 2, 3)
    with pytest.raises(
        EnvironmentUnusableError,
        match=r"4 episodes in a row could not .* the last one: it has ended",
    ):
        played(world, 4)


def test_a_bug_is_not_a_failure() -> None:
    world = FrailBandit()
    world.restart = lambda seed: 1 / 0  # type: ignore[assignment, method-assign]
    with pytest.raises(ZeroDivisionError):
        played(world, 1)
