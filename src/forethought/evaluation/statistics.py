"""Rates and means with their intervals: of evaluations, of thoughts, of collections."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import fsum, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from forethought.rollouts.thought_facts import ThoughtCounts, count_thoughts
from forethought.types import Step, Trajectory

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
    """Number of cases."""

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


JsonObject: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class ThoughtRates:
    """One agent's; None where the environment offers no facts, or the prompt asks for none.

    `docs/reference/faithfulness.md` defines each.
    """

    perception_accuracy: Rate | None = None
    """Share of claims about the observation that are true."""
    perceived_steps: Rate | None = None
    """Share of steps in which all of these claims are true."""
    inference_accuracy: Rate | None = None
    """Share of claims that follow from the observation and are true."""
    thought_action_consistency: Rate | None = None
    """Share of steps whose response names the action that the thought concludes."""
    strict_format: Rate | None = None
    """Share of steps whose response has exactly the required form."""

    @property
    def has_any(self) -> bool:
        return self != ThoughtRates()


def thought_rates(steps: Iterable[Step]) -> ThoughtRates:
    """Rates of these steps, each with its 95 % Wilson interval."""
    counts = count_thoughts(steps)
    rates = (Rate.of(hits, total) if total else None for hits, total in counts)
    return ThoughtRates(**dict(zip(ThoughtCounts._fields, rates, strict=True)))


def rates_to_json(rates: ThoughtRates) -> JsonObject:
    """As `evaluation.json` has them: every metric, null where there is none."""
    return {name: rate_to_json(getattr(rates, name)) for name in ThoughtCounts._fields}


def rates_from_json(content: JsonObject) -> ThoughtRates:
    """What `rates_to_json` wrote.

    Raises:
        KeyError, TypeError, ValueError: it did not.
    """
    return ThoughtRates(**{name: rate_from_json(content[name]) for name in ThoughtCounts._fields})


def rate_to_json(rate: Rate | None) -> JsonObject | None:
    """Rate, interval and count; null where there is none."""
    if rate is None:
        return None
    return {"rate": rate.share, "interval": list(rate.interval), "count": rate.count}


def rate_from_json(content: JsonObject | None) -> Rate | None:
    """What `rate_to_json` wrote.

    Raises:
        KeyError, TypeError, ValueError: it did not.
    """
    if content is None:
        return None
    low, high = content["interval"]
    interval = Interval(float(low), float(high))
    return Rate(float(content["rate"]), interval, int(content["count"]))


_RESAMPLES = 1000
"""A collection may have very many episodes, and this is only to be glanced at."""


@dataclass
class CollectionStats:
    """What has been counted so far."""

    files: int = 0
    steps: int = 0
    invalid: int = 0
    """Steps whose answer named no valid action."""
    successes: int = 0
    failures: int = 0
    """Episodes lost to the environment; in none of the other numbers."""
    returns: list[float] = field(default_factory=list[float])

    def add(self, trajectories: Iterable[Trajectory]) -> None:
        """Counts one file's episodes."""
        self.files += 1
        for trajectory in trajectories:
            if trajectory.failure is not None:
                self.failures += 1
                continue
            self.steps += len(trajectory.steps)
            self.invalid += sum(not step.action.is_valid for step in trajectory.steps)
            self.successes += trajectory.success
            self.returns.append(trajectory.total_reward)

    def summary(self) -> dict[str, object]:
        """For programs. Rates are null where there is no episode."""
        episodes = len(self.returns)
        return {
            "episodes": episodes,
            "failures": self.failures,
            "steps": self.steps,
            "files": self.files,
            "success_rate": self.successes / episodes if episodes else None,
            "success_interval": self.success_interval(),
            "mean_return": fsum(self.returns) / episodes if episodes else None,
            "return_interval": self.return_interval(),
            "invalid_rate": self.invalid / self.steps if self.steps else None,
        }

    def success_interval(self) -> Interval | None:
        """95 %, Wilson; None where there is no episode."""
        episodes = len(self.returns)
        return wilson_interval(self.successes, episodes) if episodes else None

    def return_interval(self) -> Interval | None:
        """95 %, bootstrap; None where there is no episode."""
        if not self.returns:
            return None
        return bootstrap_interval(self.returns, np.random.default_rng(0), resamples=_RESAMPLES)
