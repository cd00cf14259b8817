"""High-water marks: how they are read, and that they are of the work, not of what came before."""

import sys

import numpy as np
import pytest

from benchmarks.speed.contract import Pair, compare, side_by_side
from benchmarks.speed.memory import Peak, high_water_mib, highest, with_peak
from tests.skips import needs

STATUS = "Name:\tpython\nVmPeak:\t  901 kB\nVmHWM:\t  768512 kB\nVmRSS:\t  1024 kB\n"


def test_the_mark_is_in_kib() -> None:
    """768,512 KiB / 1024 = 750.5 MiB; VmPeak and VmRSS are something else."""
    assert high_water_mib(STATUS) == 750.5


def test_a_status_without_the_mark_says_nothing() -> None:
    assert high_water_mib("Name:\tpython\nVmRSS:\t  1024 kB\n") is None


@pytest.mark.parametrize(
    ("peaks", "expected"),
    [
        pytest.param([Peak(3.0, None), Peak(5.0, None)], Peak(5.0, None), id="no GPU"),
        pytest.param([Peak(3.0, 9.0), Peak(5.0, 2.0)], Peak(5.0, 9.0), id="each kind by itself"),
        pytest.param([Peak(None, 1.0), None], Peak(None, 1.0), id="a system that does not tell"),
        pytest.param([None, None], None, id="not measured"),
    ],
)
def test_highest(peaks: list[Peak | None], expected: Peak | None) -> None:
    assert highest(peaks) == expected


@pytest.mark.skipif(sys.platform != "linux", reason=needs("Linux", "make test (on Linux)"))
def test_memory_that_was_freed_before_does_not_count() -> None:
    """200 MiB while the first runs, hardly any while the second does."""

    def work(mib: int) -> float:
        return float(np.ones(mib << 17).sum())  # 2**17 numbers of 8 bytes are a MiB

    pair = side_by_side(lambda: work(200), lambda: work(1))
    assert pair[:2] == (200 << 17, 1 << 17)
    assert pair.peak is not None
    assert pair.baseline_peak is not None
    if pair.peak.resident_mib is None or pair.baseline_peak.resident_mib is None:
        pytest.skip(needs("memory marks that may be reset", "make test (outside of a sandbox)"))
    assert 150 < pair.peak.resident_mib - pair.baseline_peak.resident_mib < 250


def test_what_the_work_raises_comes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        with_peak(lambda: 1 / 0)


def test_the_highest_peaks_stand_beside_the_speeds() -> None:
    pairs = [
        Pair(10, 4, Peak(100.0, None), Peak(300.0, None)),
        Pair(12, 6, Peak(110.0, None), Peak(250.0, None)),
    ]
    result = compare("a", "steps/s", pairs)
    assert (result.peak, result.baseline_peak) == (Peak(110.0, None), Peak(300.0, None))


def test_another_unit_keeps_the_peaks() -> None:
    """2 s and 4 s for 8 steps: 4 and 2 steps a second."""
    pair = Pair(2, 4, Peak(1.0, None), Peak(2.0, None)).converted(lambda s: 8 / s)
    assert pair == Pair(4, 2, Peak(1.0, None), Peak(2.0, None))
