"""What a benchmark says."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple


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


Benchmark = Callable[[], Iterator[BenchmarkResult]]
"""Measures, and yields each result when it is there. Uses one core."""


class Pair(NamedTuple):
    """Two measurements of one thing, made one right after the other."""

    ours: float
    baseline: float


def compare(
    name: str, unit: str, pairs: Sequence[Pair], *, less_is_better: bool = False
) -> BenchmarkResult:
    """The medians of both sides, and the spread of their ratio."""
    ratios = [ours / baseline for ours, baseline in pairs]
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
    )
