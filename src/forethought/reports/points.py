"""The points of one curve: how many are drawn, and the trend through them."""

from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

_MOST_POINTS = 240
"""A longer curve is drawn as the mean and the range of neighbouring points."""
_LONGEST_REACH = 25


class Curve(NamedTuple):
    """One line of a chart; every array is as long as the others."""

    x: Numbers
    y: Numbers
    label: str = ""
    """Needed where a chart has several."""
    low: Numbers | None = None
    high: Numbers | None = None
    weights: Numbers | None = None
    """How much each point counts in the trend; all the same where there are none."""


def thinned(curve: Curve) -> Curve:
    """The same curve with at most `_MOST_POINTS` points."""
    size = _neighbours(len(curve.x))
    if size == 1:
        return curve
    starts = np.arange(0, len(curve.x), size)
    counts = np.diff(np.append(starts, len(curve.x)))

    def mean(values: Numbers) -> Numbers:
        return np.add.reduceat(values, starts) / counts

    if curve.low is None or curve.high is None:
        low, high = np.minimum.reduceat(curve.y, starts), np.maximum.reduceat(curve.y, starts)
    else:
        # The mean of intervals, as of points: what a typical point of these was known to.
        low, high = mean(curve.low), mean(curve.high)
    weights = None if curve.weights is None else mean(curve.weights)
    return Curve(mean(curve.x), mean(curve.y), curve.label, low, high, weights)


def positive(curve: Curve) -> Curve:
    """The points that a logarithmic axis can show; bands and weights are not kept."""
    is_positive = curve.y > 0
    return Curve(curve.x[is_positive], curve.y[is_positive], curve.label)


def trend(y: Numbers, weights: Numbers | None = None) -> Numbers:
    """The weighted mean of each point and its neighbours, as many on either side.

    Towards the ends there are fewer of them, so that the trend of a steep curve begins
    and ends where the curve does.
    """
    n, reach = len(y), trend_reach(len(y))
    w = np.ones(n) if weights is None else weights
    at = np.arange(n)
    reach_T = np.minimum(reach, np.minimum(at, n - 1 - at))
    start, stop = at - reach_T, at + reach_T + 1
    total, summed = (np.append(0.0, np.cumsum(values)) for values in (w, w * y))
    weight = total[stop] - total[start]
    mean = np.divide(summed[stop] - summed[start], weight, out=np.zeros(n), where=weight > 0)
    return np.where(weight > 0, mean, y)


def trend_reach(points: int) -> int:
    """How many neighbours on either side a trend takes in."""
    return min(_LONGEST_REACH, points // 10)


def how_drawn(points: int) -> str:
    """What became of a curve of so many points, in a sentence or two; empty if nothing did."""
    size = _neighbours(points)
    reach = trend_reach(ceil(points / size))
    sentences: list[str] = []
    if size > 1:
        sentences.append(f"Every {size} neighbouring points are drawn as their mean and range.")
    if reach > 0:
        sentences.append(f"Lines: the mean of up to {(2 * reach + 1) * size} neighbouring points.")
    return " ".join(sentences)


def _neighbours(points: int) -> int:
    """How many points of a curve become one."""
    return max(1, ceil(points / _MOST_POINTS))
