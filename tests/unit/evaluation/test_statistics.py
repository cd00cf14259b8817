"""Intervals by hand where a hand can, and by their promise where it cannot."""

from math import sqrt

import numpy as np
import pytest

from forethought.evaluation import statistics
from forethought.evaluation.statistics import bootstrap_interval, wilson_interval

Z = 1.959963985  # The normal quantile at 0.975.


@pytest.mark.parametrize(
    ("successes", "episodes", "low", "high"),
    [
        # p = 1/2: the center stays; radius z sqrt(1/40 + z²/400) / (1 + z²/10) = 0.263406...
        pytest.param(5, 10, 0.2365931, 0.7634069, id="half of ten"),
        # p = 0: from 0 to z² / (n + z²) = 3.841459 / 13.841459
        pytest.param(0, 10, 0.0, 0.2775328, id="none of ten"),
        pytest.param(10, 10, 0.7224672, 1.0, id="all of ten"),
        # n = 1: z² / (1 + z²) = 3.841459 / 4.841459
        pytest.param(0, 1, 0.0, 0.7934506, id="none of one"),
        # p = 0.9: (0.9 + 0.0192073 ± z sqrt(0.0009 + 0.0000960)) / 1.0384146
        pytest.param(90, 100, 0.8256343, 0.9447708, id="ninety of a hundred"),
    ],
)
def test_wilson_by_hand(successes: int, episodes: int, low: float, high: float) -> None:
    assert wilson_interval(successes, episodes) == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize(("successes", "episodes"), [(1, 7), (3, 4), (512, 1000)])
def test_wilson_ends_are_the_rates_that_z_standard_errors_separate(
    successes: int, episodes: int
) -> None:
    rate = successes / episodes
    for end in wilson_interval(successes, episodes):
        assert abs(rate - end) == pytest.approx(Z * sqrt(end * (1 - end) / episodes))


def test_wilson_at_another_confidence() -> None:
    """z = 1 at 68.27 %: half of ten gives 1/2 ± sqrt(1/40 + 1/400) / 1.1."""
    radius = sqrt(0.0275) / 1.1
    got = wilson_interval(5, 10, confidence=0.6826894921)
    assert got == pytest.approx((0.5 - radius, 0.5 + radius), abs=1e-9)


@pytest.mark.parametrize(("successes", "episodes"), [(0, 0), (-1, 5), (6, 5)])
def test_wilson_refuses_impossible_counts(successes: int, episodes: int) -> None:
    with pytest.raises(ValueError, match=f"got {successes} successes in {episodes} episodes"):
        wilson_interval(successes, episodes)


@pytest.mark.parametrize(
    ("confidence", "interval"),
    [
        # Two values 0 and 1 resample to means 0, 1/2, 1 with shares 1/4, 1/2, 1/4.
        pytest.param(0.95, (0.0, 1.0), id="2.5 % lies in the first quarter"),
        pytest.param(0.40, (0.5, 0.5), id="30 % lies in the middle half"),
    ],
)
def test_bootstrap_of_two_values(confidence: float, interval: tuple[float, float]) -> None:
    assert bootstrap_interval([0.0, 1.0], np.random.default_rng(0), confidence) == interval


def test_bootstrap_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    intervals = [
        bootstrap_interval(rng.exponential(size=60).tolist(), rng, 0.9, resamples=400)
        for _ in range(300)
    ]
    coverage = np.mean([low <= 1.0 <= high for low, high in intervals])
    # Skewed values cover a little less than 90 %; three standard errors are 0.052.
    assert 0.82 < coverage < 0.95


def test_bootstrap_narrows_with_the_root_of_the_number() -> None:
    rng = np.random.default_rng(0)
    widths = [
        high - low
        for low, high in (bootstrap_interval(rng.normal(size=n).tolist(), rng) for n in (25, 400))
    ]
    assert widths[0] / widths[1] == pytest.approx(4, rel=0.25)


def test_bootstrap_in_blocks_is_the_same_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(size=10).tolist()
    whole = bootstrap_interval(values, np.random.default_rng(1), resamples=100)
    monkeypatch.setattr(statistics, "_DRAWS_PER_BLOCK", 30)
    assert bootstrap_interval(values, np.random.default_rng(1), resamples=100) == whole


def test_bootstrap_depends_on_its_generator_alone() -> None:
    a, b, c = (bootstrap_interval([1.0, 2.0, 4.0] * 9, np.random.default_rng(s)) for s in (1, 1, 2))
    assert a == b
    assert a != c


def test_bootstrap_of_one_value_has_no_width() -> None:
    assert bootstrap_interval([3.0], np.random.default_rng(0)) == (3.0, 3.0)


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")]])
def test_bootstrap_refuses_what_has_no_mean(values: list[float]) -> None:
    with pytest.raises(ValueError, match="all finite"):
        bootstrap_interval(values, np.random.default_rng(0))


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_a_confidence_is_a_share(confidence: float) -> None:
    with pytest.raises(ValueError, match="got confidence"):
        wilson_interval(1, 2, confidence)
    with pytest.raises(ValueError, match="got confidence"):
        bootstrap_interval([1.0], np.random.default_rng(0), confidence)
