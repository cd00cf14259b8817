"""What a benchmark says."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass


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
