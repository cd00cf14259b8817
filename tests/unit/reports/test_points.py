"""What is drawn of a curve, counted by hand."""

import numpy as np
import pytest

from forethought.reports.charts import Curve, how_drawn, positive, thinned, trend, trend_reach


def numbers(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_a_curve_of_few_points_is_drawn_as_it_is() -> None:
    curve = Curve(np.arange(240.0), np.arange(240.0))
    assert thinned(curve) is curve


def test_a_longer_one_is_drawn_as_means_and_ranges_of_neighbors() -> None:
    """241 points in pairs, the last one alone."""
    y = np.arange(241.0) ** 2
    got = thinned(Curve(np.arange(241.0), y, "squares", weights=np.arange(241.0)))
    assert got.label == "squares"
    assert got.low is not None
    assert got.high is not None
    assert got.weights is not None
    assert len(got.x) == 121
    assert got.x[[0, 1, 120]].tolist() == [0.5, 2.5, 240.0]
    assert got.y[[0, 1, 120]].tolist() == [0.5, 6.5, 57600.0]
    assert got.low[[0, 1, 120]].tolist() == [0.0, 4.0, 57600.0]
    assert got.high[[0, 1, 120]].tolist() == [1.0, 9.0, 57600.0]
    assert got.weights[[0, 1, 120]].tolist() == [0.5, 2.5, 240.0]


def test_intervals_are_averaged_as_their_points_are() -> None:
    y = np.arange(480.0)
    got = thinned(Curve(y, y, low=y - 1, high=y + 3))
    assert got.low is not None
    assert got.high is not None
    assert got.low.tolist() == (got.y - 1).tolist()
    assert got.high.tolist() == (got.y + 3).tolist()


def test_a_logarithmic_axis_has_no_place_for_zero_and_below() -> None:
    got = positive(Curve(numbers(1, 2, 3, 4), numbers(0.5, 0, -1, 2), "loss"))
    assert got.x.tolist() == [1, 4]
    assert got.y.tolist() == [0.5, 2]
    assert got.label == "loss"


@pytest.mark.parametrize(("points", "reach"), [(9, 0), (10, 1), (29, 2), (250, 25), (900, 25)])
def test_a_trend_takes_in_a_tenth_of_the_points(points: int, reach: int) -> None:
    assert trend_reach(points) == reach


def test_few_points_are_their_own_trend() -> None:
    assert trend(numbers(3, 1, 2)).tolist() == [3, 1, 2]


def test_a_trend_by_hand() -> None:
    """Ten points: one neighbor on either side, none at the ends."""
    y = numbers(9, 0, 3, 6, 0, 0, 0, 0, 3, 6)
    assert trend(y) == pytest.approx([9, 4, 3, 3, 2, 0, 0, 1, 3, 6])


def test_a_point_of_three_episodes_counts_three_times() -> None:
    y, weights = numbers(*[0, 4, 8] + 7 * [0]), numbers(*[1, 3, 1] + 7 * [1])
    assert trend(y, weights)[1] == pytest.approx((0 * 1 + 4 * 3 + 8 * 1) / 5)


def test_where_nothing_has_weight_the_points_stay() -> None:
    y = np.arange(10.0)
    assert trend(y, np.zeros(10)).tolist() == y.tolist()


def test_the_trend_of_a_line_is_the_line() -> None:
    y = 2.5 * np.arange(300.0) - 7
    assert trend(y) == pytest.approx(y)


@pytest.mark.parametrize(
    ("points", "sentences"),
    [
        (5, ""),
        (20, "Lines: the mean of up to 5 neighboring points."),
        (
            480,
            "Every 2 neighboring points are drawn as their mean and range. "
            "Lines: the mean of up to 98 neighboring points.",
        ),
    ],
)
def test_what_was_done_is_said(points: int, sentences: str) -> None:
    assert how_drawn(points) == sentences
