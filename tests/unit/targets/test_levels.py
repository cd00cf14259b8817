"""Which episodes are best, and at which level each of their steps is."""

import numpy as np
import pytest

from forethought.targets.returns import best_episodes, return_bins


@pytest.mark.parametrize(
    ("fraction", "kept"),
    [
        pytest.param(0.25, [2], id="one of four"),
        pytest.param(0.5, [0, 2], id="of equal ones the earlier"),
        pytest.param(0.75, [0, 2, 3], id="in their own order"),
        pytest.param(0.01, [2], id="at least one"),
        pytest.param(1.0, [0, 1, 2, 3], id="all"),
    ],
)
def test_best_episodes(fraction: float, kept: list[int]) -> None:
    # 0.1 + 0.2 is not 0.3 to the last bit, and yet no better.
    assert best_episodes([0.3, -1.0, 2.0, 0.1 + 0.2], fraction=fraction) == kept


def levels_of(returns: list[float], levels: int) -> list[int]:
    """Of episodes of one step each."""
    told = return_bins([np.array([one]) for one in returns], levels=levels)
    return [level for (level,) in told]


@pytest.mark.parametrize(
    ("returns", "levels", "expected"),
    [
        # Lower than each: 0, 2, 4, 6, 8 of ten; x is 0, 1/4, 1/2, 3/4, 1.
        pytest.param([-3, -3, -2, -2, 0, 0, 1, 1, 5, 5], 4, [1, 1, 2, 2, 3, 3, 4, 4, 4, 4], id="4"),
        pytest.param([0, 0, 0, 1], 2, [1, 1, 1, 2], id="few succeed"),
        pytest.param([0, 1, 1, 1], 2, [1, 2, 2, 2], id="most succeed"),
        pytest.param([0, 0, 0, 1], 4, [1, 1, 1, 4], id="levels that nobody has"),
        pytest.param([2, 2], 3, [3, 3], id="all alike"),
    ],
)
def test_levels(returns: list[float], levels: int, expected: list[int]) -> None:
    assert levels_of(returns, levels) == expected


def test_levels_are_among_those_that_came_so_far() -> None:
    """At its second step the first episode has the lowest return of two, not of three."""
    episodes = [np.array([1.0, 0.0]), np.array([3.0]), np.array([2.0, 2.0])]
    assert return_bins(episodes, levels=3) == [(1, 1), (3,), (2, 3)]


def test_refused() -> None:
    with pytest.raises(ValueError, match="expected episodes, got none"):
        best_episodes([], fraction=0.5)
    with pytest.raises(ValueError, match="fraction: expected above 0, at most 1, got 0"):
        best_episodes([1.0], fraction=0)
    with pytest.raises(ValueError, match="levels: expected 2 or more, got 1"):
        return_bins([], levels=1)
