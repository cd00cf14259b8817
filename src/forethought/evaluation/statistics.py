"""How far a measured rate or mean may lie from the true one."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

_DRAWS_PER_BLOCK = 1 << 20
"""Bounds the memory of a bootstrap: 8 MiB of indices and 8 MiB of values at a time."""


class Interval(NamedTuple):
    """Both ends belong to it."""

    low: float
    high: float


def wilson_interval(successes: int, episodes: int, confidence: float = 0.95) -> Interval:
    """Interval for a success rate, right also for few episodes and for rates of 0 and 1.

        (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n),   p = successes / n

    Wilson 1927; z is the normal quantile at (1 + confidence) / 2.

    Raises:
        ValueError: no episodes, more successes than episodes, or a confidence outside (0, 1).
    """
    if not 0 <= successes <= episodes or episodes < 1:
        raise ValueError(f"got {successes} successes in {episodes} episodes, expected 0 <= s <= n")
    z = NormalDist().inv_cdf((1 + _checked(confidence)) / 2)
    p, n = successes / episodes, episodes
    center = p + z**2 / (2 * n)
    radius = z * sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    scale = 1 + z**2 / n
    # At the extremes center and radius cancel, but for rounding.
    low = 0.0 if successes == 0 else (center - radius) / scale
    high = 1.0 if successes == episodes else (center + radius) / scale
    return Interval(low, high)


@dataclass(frozen=True)
class Rate:
    """A share, how far it may lie from the true one, and what it is a share of."""

    share: float
    interval: Interval
    """95 %, Wilson."""
    count: int
    """Of what was looked at."""

    @classmethod
    def of(cls, hits: int, count: int) -> "Rate":
        """So many of so many.

        Raises:
            ValueError: of none, or more than there are.
        """
        return cls(share=hits / count, interval=wilson_interval(hits, count), count=count)


def bootstrap_interval(
    values: Sequence[float],
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 10_000,
) -> Interval:
    """Percentile bootstrap interval for the mean of independent values.

    Efron 1979: the quantiles of the means of samples of the same size, drawn
    from the values with replacement. A single value gives an interval of no
    width, which says nothing.

    Args:
        values: one per episode, finite.
        rng: where the draws come from.

    Raises:
        ValueError: no values, one that is not finite, or a confidence outside (0, 1).
    """
    values_N = np.asarray(values, dtype=np.float64)
    if values_N.ndim != 1 or not values_N.size or not np.isfinite(values_N).all():
        raise ValueError(f"got {list(values_N.shape)} values, expected at least one, all finite")
    tail = (1 - _checked(confidence)) / 2
    n = values_N.size
    means_R = np.empty(resamples)
    block = max(1, _DRAWS_PER_BLOCK // n)
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        means_R[start : start + rows] = values_N[rng.integers(n, size=(rows, n))].mean(axis=1)
    low, high = np.quantile(means_R, [tail, 1 - tail])
    return Interval(float(low), float(high))


def _checked(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"got confidence {confidence}, expected one between 0 and 1")
    return confidence
