"""Eq. 10 by hand: what a step is worth, and what follows from it."""

from typing import Literal

import numpy as np
import pytest

from forethought.targets.preference import (
    PairReward,
    lookahead_score,
    preference_scores,
    trajectory_scores,
)
from forethought.types import Trajectory
from tests.unit.targets.builders import Did, trajectory

Counts = Literal["progress_delta", "progress"]


@pytest.mark.parametrize(
    ("progress", "invalid", "gamma", "counts", "expected"),
    [
        pytest.param([1.0], [False], 0.9, "progress_delta", [50.0], id="the whole goal at once"),
        pytest.param([0.0], [True], 0.9, "progress_delta", [-1.0], id="an invalid action"),
        pytest.param(
            # 0.9 · 0.9 · 50 = 40.5; 0.9 · 50 = 45
            [0.0, 0.0, 1.0],
            [False] * 3,
            0.9,
            "progress_delta",
            [40.5, 45.0, 50.0],
            id="later is worth less",
        ),
        pytest.param(
            # gains 0.5, 0, 0.5; S_1 = -1 + 0.5 · 25 = 11.5; S_0 = 25 + 5.75
            [0.5, 0.5, 1.0],
            [False, True, False],
            0.5,
            "progress_delta",
            [30.75, 11.5, 25.0],
            id="half now, an invalid action, half later",
        ),
        pytest.param(
            [0.5, 0.25],
            [False, False],
            1.0,
            "progress_delta",
            [12.5, -12.5],
            id="progress that is lost costs what it brought",
        ),
        pytest.param(
            # as printed: 25 + 0.5 · (25 - 1 + 0.5 · 50)
            [0.5, 0.5, 1.0],
            [False, True, False],
            0.5,
            "progress",
            [49.5, 49.0, 50.0],
            id="as printed: every step counts what is reached",
        ),
    ],
)
def test_scores(
    progress: list[float], invalid: list[bool], gamma: float, counts: Counts, expected: list[float]
) -> None:
    scores_T = preference_scores(
        progress_T=np.array(progress),
        is_invalid_T=np.array(invalid),
        gamma=gamma,
        counts=counts,
    )
    np.testing.assert_allclose(scores_T, expected)


def test_as_printed_lingering_half_way_beats_winning() -> None:
    """Why gains are the default."""

    def first(progress: list[float], counts: Counts) -> float:
        scores_T = preference_scores(
            progress_T=np.array(progress),
            is_invalid_T=np.zeros(len(progress), dtype=np.bool_),
            gamma=0.9,
            counts=counts,
        )
        return float(scores_T[0])

    won, lingered = [0.5, 1.0], [0.5] * 20
    assert first(lingered, "progress") > first(won, "progress")
    assert first(lingered, "progress_delta") < first(won, "progress_delta")


@pytest.mark.parametrize(
    ("episode", "pair_reward", "expected"),
    [
        pytest.param(
            trajectory(Did("a", progress=0.5), Did("b", progress=1.0), success=True),
            "progress_delta",
            [37.5, 25.0],
            id="an environment that measures progress",
        ),
        pytest.param(
            trajectory(Did("a"), Did("b"), success=True),
            "progress_delta",
            [25.0, 50.0],
            id="one that does not: success is the whole goal, at the end",
        ),
        pytest.param(
            trajectory(Did("a", is_valid=False), Did("b"), ends="truncated"),
            "progress_delta",
            [-1.0, 0.0],
            id="cut by a limit, without success",
        ),
        pytest.param(
            trajectory(Did("a", reward=1.0), Did("b", reward=10.0, progress=1.0), success=True),
            "reward",
            [6.0, 10.0],
            id="the environment's own reward",
        ),
    ],
)
def test_of_a_trajectory(
    episode: Trajectory, pair_reward: PairReward, expected: list[float]
) -> None:
    scores_T = trajectory_scores(
        episode,
        pair_reward=pair_reward,
        gamma=0.5,
    )
    np.testing.assert_allclose(scores_T, expected)


def test_from_the_middle_only_what_is_gained_from_there_counts() -> None:
    whole = trajectory(Did("a", progress=0.5), Did("b", progress=1.0), success=True)
    rest = trajectory(Did("b", progress=1.0), first_step=1, success=True)
    from_there = trajectory_scores(
        rest, pair_reward="progress_delta", gamma=0.5, progress_before=0.5
    )
    np.testing.assert_allclose(
        from_there, trajectory_scores(whole, pair_reward="progress_delta", gamma=0.5)[1:]
    )


def test_refused() -> None:
    fine = np.array([0.5, 1.0])
    with pytest.raises(ValueError, match=r"progress_T: expected 0 to 1, got \[0.5 1.1\]"):
        preference_scores(
            progress_T=np.array([0.5, 1.1]), is_invalid_T=np.array([False] * 2), gamma=0.9
        )
    with pytest.raises(ValueError, match=r"is_invalid_T: expected bool \[2\], got bool \[1\]"):
        preference_scores(progress_T=fine, is_invalid_T=np.array([False]), gamma=0.9)
    with pytest.raises(ValueError, match=r"is_invalid_T: expected bool \[2\], got float64 \[2\]"):
        preference_scores(progress_T=fine, is_invalid_T=fine, gamma=0.9)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"gamma: expected 0 to 1, got 1\.5"):
        preference_scores(progress_T=fine, is_invalid_T=np.array([False] * 2), gamma=1.5)
    with pytest.raises(
        ValueError, match="Environment, seed 0: expected an episode played to its end"
    ):
        trajectory_scores(trajectory(Did("a"), ends=""), pair_reward="progress_delta", gamma=0.9)


CLIMB = trajectory(
    Did("up", progress=0.5),
    Did("jump", progress=0.5, is_valid=False),
    Did("up", progress=1.0),
    success=True,
)


@pytest.mark.parametrize(
    ("at", "horizon", "expected"),
    [
        pytest.param(0, 1, 25.0, id="the step alone"),
        pytest.param(0, 2, 24.5, id="and the invalid action behind it"),  # 25 - 0.5
        pytest.param(0, 3, 30.75, id="to the end"),
        pytest.param(0, 9, 30.75, id="the end is nearer than the horizon"),
        pytest.param(1, 2, 11.5, id="from the middle"),  # -1 + 0.5 · 25
        pytest.param(2, 1, 25.0, id="the last step"),
    ],
)
def test_what_is_seen_within_a_horizon(at: int, horizon: int, expected: float) -> None:
    before = CLIMB.steps[at - 1].progress if at else 0.0
    assert before is not None
    found = lookahead_score(
        CLIMB,
        at=at,
        horizon=horizon,
        pair_reward="progress_delta",
        gamma=0.5,
        progress_before=before,
    )
    assert found == pytest.approx(expected)


def test_a_success_counts_where_it_is_seen() -> None:
    """In an environment that measures no progress."""
    won = trajectory(Did("a"), Did("b"), success=True)
    near, far = (
        lookahead_score(won, at=0, horizon=horizon, pair_reward="progress_delta", gamma=0.5)
        for horizon in (1, 2)
    )
    assert (near, far) == (0.0, 25.0)


def test_a_way_that_was_left_early_is_not_judged_further() -> None:
    left = trajectory(Did("up", progress=0.0), Did("up", progress=0.5), ends="")
    assert lookahead_score(left, at=0, horizon=2, pair_reward="progress_delta", gamma=0.5) == 12.5
    for at, horizon in ((0, 3), (1, 2), (2, 1)):
        with pytest.raises(ValueError, match=f"expected {horizon} steps from step {at} on"):
            lookahead_score(left, at=at, horizon=horizon, pair_reward="progress_delta", gamma=0.5)
