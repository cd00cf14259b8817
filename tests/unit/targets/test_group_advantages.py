"""From recorded episodes to advantages: who is in a group, and how episodes may end."""

from dataclasses import replace

import pytest

from forethought.targets.episode_advantages import GroupEstimator, episode_return, group_advantages
from forethought.types import EnvironmentFailure, Trajectory
from tests.unit.targets.builders import Did, trajectory


def episode(*rewards: float, seed: int = 7, ends: str = "terminated") -> Trajectory:
    """A whole episode, through the states a, b, c."""
    did = [Did("+", state, reward) for state, reward in zip("abc", rewards, strict=False)]
    return trajectory(*did, seed=seed, ends=ends)


FAILED = replace(episode(0.0), steps=(), failure=EnvironmentFailure.CRASH)
UNFINISHED = episode(1.0, ends="")


def advantages_of(
    *episodes: Trajectory, estimator: GroupEstimator = "dr_grpo", step_weight: float = 1.0
) -> list[list[float]]:
    result = group_advantages(episodes, estimator=estimator, gamma=0.5, step_weight=step_weight)
    return [advantages_T.tolist() for advantages_T in result]


@pytest.mark.parametrize(
    ("estimator", "advantages"),
    [
        # returns 1 + 4 = 5 and 1, each the other's baseline
        pytest.param("rloo", [[4, 4], [-4]], id="rloo"),
        # mean 3, deviations ±2, std 2
        pytest.param("grpo", [[1, 1], [-1]], id="grpo"),
        pytest.param("dr_grpo", [[2, 2], [-2]], id="dr_grpo"),
        # A^E = ±1; both start in a, to go 1 + 0.5 · 4 = 3 and 1: A^S = ±1
        pytest.param("gigpo", [[2, 1], [-2]], id="gigpo"),
    ],
)
def test_every_step_of_an_episode(estimator: GroupEstimator, advantages: list[list[float]]) -> None:
    got = advantages_of(episode(1.0, 4.0), episode(1.0), estimator=estimator)
    assert got == [pytest.approx(part) for part in advantages]


def test_seeds_make_groups_in_any_order() -> None:
    """Returns 1 and 3 of seed 7, mean 2; 10 and 20 of seed 8, mean 15."""
    got = advantages_of(
        episode(1.0, seed=7), episode(10.0, seed=8), episode(20.0, seed=8), episode(3.0, seed=7)
    )
    assert got == [[-1.0], [-5.0], [5.0], [1.0]]


def test_environments_with_equal_seeds_are_different_groups() -> None:
    elsewhere = [replace(episode(reward), environment_id="other") for reward in (10.0, 20.0)]
    assert advantages_of(episode(1.0), elsewhere[0], episode(3.0), elsewhere[1]) == [
        [-1.0],
        [-5.0],
        [1.0],
        [5.0],
    ]


def test_steps_are_compared_within_a_group_alone() -> None:
    """All four begin in state a. Within each group the rewards are equal; across, they are not."""
    got = advantages_of(
        episode(1.0, seed=7),
        episode(1.0, seed=7),
        episode(5.0, seed=8),
        episode(5.0, seed=8),
        estimator="gigpo",
    )
    assert got == [[0.0]] * 4


def test_the_steps_weight_arrives() -> None:
    """A^E = ±1 and A^S = ±1, the latter times 3."""
    got = advantages_of(episode(1.0), episode(0.0), estimator="gigpo", step_weight=3.0)
    assert got == [[pytest.approx(4.0)], [pytest.approx(-4.0)]]


@pytest.mark.parametrize("estimator", ["rloo", "grpo", "dr_grpo", "gigpo"])
def test_a_truncated_episode_is_worth_what_it_earned(estimator: GroupEstimator) -> None:
    cut = advantages_of(episode(1.0, 3.0, ends="truncated"), episode(2.0), estimator=estimator)
    assert cut == advantages_of(episode(1.0, 3.0), episode(2.0), estimator=estimator)


def test_a_failed_episode_is_compared_with_nobody() -> None:
    """A return of 0 in its place would make the mean 4/3 instead of 2."""
    assert advantages_of(episode(1.0), FAILED, episode(3.0)) == [[-1.0], [], [1.0]]


@pytest.mark.parametrize("estimator", ["rloo", "grpo", "dr_grpo", "gigpo"])
def test_who_is_left_alone_by_failures_is_not_judged(estimator: GroupEstimator) -> None:
    assert advantages_of(FAILED, episode(1.0, 3.0), estimator=estimator) == [[], [0.0, 0.0]]


def test_a_group_of_failures() -> None:
    assert advantages_of(FAILED, FAILED) == [[], []]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        pytest.param(UNFINISHED, "1 steps from step 0, unfinished", id="cut by the collection"),
        pytest.param(
            replace(episode(1.0), first_step=2), "1 steps from step 2, finished", id="its end alone"
        ),
        pytest.param(
            replace(episode(1.0), steps=episode(1.0).steps * 2), "after its end", id="two in one"
        ),
        pytest.param(replace(episode(1.0), steps=()), "0 steps", id="no steps"),
    ],
)
def test_not_a_whole_episode(wrong: Trajectory, message: str) -> None:
    with pytest.raises(ValueError, match=f"Environment, seed 7.*{message}"):
        advantages_of(wrong, episode(1.0))


def test_a_group_of_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Environment, seed 8: .* at least 2 episodes, got 1"):
        advantages_of(episode(1.0), episode(1.0), episode(1.0, seed=8))


def test_a_failed_episode_has_no_return() -> None:
    with pytest.raises(ValueError, match="a crash is not experience"):
        episode_return(FAILED)
