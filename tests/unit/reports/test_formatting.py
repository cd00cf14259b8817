"""Numbers as a reader sees them."""

import math

import pytest

from forethought.evaluation.statistics import Interval
from forethought.reports.markup import (
    count,
    counted,
    decimal,
    decimal_interval,
    duration,
    percent,
    percent_interval,
    share,
    short,
    speed,
)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (percent(0.8567), "85.7\u202f%"),
        (percent(1.0), "100.0\u202f%"),
        (percent(None), "–"),
        (percent_interval(Interval(0.739, 0.9191)), "73.9 – 91.9\u202f%"),
        (decimal(-1.256), "−1.26"),
        (decimal(-1234.5, 1), "−1,234.5"),
        (decimal(None), "–"),
        (decimal(math.nan), "–"),
        (decimal(math.inf), "–"),
        (decimal_interval(Interval(-1.0, 0.25)), "−1.00 to 0.25"),
        (count(12345), "12,345"),
        (count(None), "–"),
        (counted(1, "failure", "failures"), "1 failure"),
        (counted(0, "failure", "failures"), "0 failures"),
        (counted(1200, "failure", "failures"), "1,200 failures"),
        (share(0.01234), "1.23\u202f%"),
    ],
)
def test_numbers(shown: str, expected: str) -> None:
    assert shown == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (0.012345, "0.0123"),
        (1.2e-6, "1.2e−6"),
        (-5.64, "−5.64"),
        (1e7, "1e7"),
        (math.nan, "nan"),
    ],
)
def test_three_significant_digits(value: float, expected: str) -> None:
    assert short(value) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.04, "0.0 s"),
        (9.5, "9.5 s"),
        (59.94, "59.9 s"),
        (59.97, "1 min 0 s"),
        (60, "1 min 0 s"),
        (271, "4 min 31 s"),
        (3599.6, "1 h 0 min"),
        (3659.6, "1 h 1 min"),
        (12000, "3 h 20 min"),
    ],
)
def test_durations_have_two_units_at_most(seconds: float, expected: str) -> None:
    assert duration(seconds).replace("\u202f", " ") == expected


@pytest.mark.parametrize(
    ("per_second", "expected"), [(3.5, "3.5"), (99.94, "99.9"), (8223.7, "8,224")]
)
def test_slow_speeds_keep_their_fractions(per_second: float, expected: str) -> None:
    assert speed(per_second) == expected
