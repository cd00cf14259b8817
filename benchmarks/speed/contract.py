"""What a benchmark says."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from benchmarks.speed.memory import Peak, highest, with_peak


@dataclass(frozen=True)
class BenchmarkResult:
    """One measured number beside what it is compared with, on the same machine."""

    name: str
    """What was measured: `environments/NumberLine/64`."""
    value: float
    """Ours."""
    unit: str
    baseline: float | None
    """The same, done in the customary way; None where there is none."""
    ratio: float | None
    """Above 1 where ours is better. The median over pairs that were run next to each other,
    and so not quite the quotient of the other two."""
    ratio_low: float | None = None
    """The lowest of those pairs."""
    ratio_high: float | None = None
    """The highest."""
    peak: Peak | None = None
    """The most memory that this process held while ours ran: the highest of the pairs."""
    baseline_peak: Peak | None = None
    """While the baseline ran; both sides' weights are there all the time."""


Benchmark = Callable[[], Iterator[BenchmarkResult]]
"""Measures, and yields each result when it is there. Uses one core."""


class Pair(NamedTuple):
    """Two measurements of one thing, made one right after the other."""

    ours: float
    baseline: float
    peak: Peak | None = None
    baseline_peak: Peak | None = None

    def converted(self, convert: Callable[[float], float]) -> "Pair":
        """The same measurements in another unit."""
        return self._replace(ours=convert(self.ours), baseline=convert(self.baseline))


def side_by_side(ours: Callable[[], float], baseline: Callable[[], float]) -> Pair:
    """Runs both, one after the other, and notes how much memory either needs."""
    our_value, our_peak = with_peak(ours)
    baseline_value, baseline_peak = with_peak(baseline)
    return Pair(our_value, baseline_value, our_peak, baseline_peak)


def compare(
    name: str, unit: str, pairs: Sequence[Pair], *, less_is_better: bool = False
) -> BenchmarkResult:
    """The medians of both sides, the spread of their ratio, and the highest peaks."""
    ratios = [pair.ours / pair.baseline for pair in pairs]
    if less_is_better:
        ratios = [1 / ratio for ratio in ratios]
    return BenchmarkResult(
        name=name,
        value=median(pair.ours for pair in pairs),
        unit=unit,
        baseline=median(pair.baseline for pair in pairs),
        ratio=median(ratios),
        ratio_low=min(ratios),
        ratio_high=max(ratios),
        peak=highest(pair.peak for pair in pairs),
        baseline_peak=highest(pair.baseline_peak for pair in pairs),
    )
