"""Normalized advantages by hand, where they degenerate, and what holds for any batch."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from forethought.targets.episode_advantages import EPSILON, normalize_advantages


@pytest.mark.parametrize(
    ("advantages", "weights", "normalized"),
    [
        # mean 2, squared deviations 1 and 1: std 1 (the population's, not the sample's √2)
        pytest.param([1.0, 3.0], None, [-1.0, 1.0], id="two of them"),
        # mean 4, squared deviations 16, 0, 16: std √(32/3)
        pytest.param(
            [0.0, 4.0, 8.0], None, [-4 / sqrt(32 / 3), 0.0, 4 / sqrt(32 / 3)], id="three of them"
        ),
        # mean (3 * 0 + 1 * 4) / 4 = 1, variance (3 * 1 + 1 * 9) / 4 = 3
        pytest.param([0.0, 4.0], [3.0, 1.0], [-1 / sqrt(3), sqrt(3)], id="one weighs three times"),
        # mean 2, std 1 of the first two; 5 is then (5 - 2) / 1
        pytest.param([1.0, 3.0, 5.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 3.0], id="one weighs nothing"),
    ],
)
def test_by_hand(
    advantages: list[float], weights: list[float] | None, normalized: list[float]
) -> None:
    result = normalize_advantages(
        np.array(advantages), weights_N=None if weights is None else np.array(weights)
    )
    assert result.dtype == np.float64
    assert result.tolist() == pytest.approx(normalized)


@pytest.mark.parametrize(
    ("advantages", "weights"),
    [
        pytest.param([0.1, 0.1, 0.1], None, id="all equal, though 0.1 has no exact mean"),
        pytest.param([5.0], None, id="a batch of one"),
        pytest.param([0.1, 0.1, 9.0], [1.0, 1.0, 0.0], id="all that weigh are equal"),
    ],
)
def test_nothing_to_prefer_is_exactly_zero(
    advantages: list[float], weights: list[float] | None
) -> None:
    result = normalize_advantages(
        np.array(advantages), weights_N=None if weights is None else np.array(weights)
    )
    assert result.tolist() == [0.0] * len(advantages)


def test_noise_of_the_arithmetic_is_not_blown_up() -> None:
    """Deviations of ε/100 stay near 1/100: without ε they would become ±1."""
    result = normalize_advantages(np.array([0.0, 2.0]) * EPSILON / 100)
    assert result.tolist() == pytest.approx([-0.01 / 1.01, 0.01 / 1.01])


@settings(deadline=None)  # a busy machine is not a failure
@given(
    advantages=st.lists(st.floats(-100, 100), min_size=2, max_size=10),
    shift=st.floats(-100, 100),
    scale=st.floats(0.1, 10),
)
def test_scale_and_shift_do_not_matter(advantages: list[float], shift: float, scale: float) -> None:
    advantages_N = np.array(advantages)
    assume(advantages_N.std() > 1e-2)
    result = normalize_advantages(advantages_N)
    assert result.mean() == pytest.approx(0.0, abs=1e-6)
    assert result.std() == pytest.approx(1.0, rel=1e-5)
    again = normalize_advantages(scale * advantages_N + shift)
    assert again.tolist() == pytest.approx(result.tolist(), abs=1e-4)


def test_whole_numbers_of_weight_are_repetitions() -> None:
    repeated = normalize_advantages(np.array([1.0, 1.0, 1.0, 5.0, 7.0, 7.0]))
    weighted = normalize_advantages(np.array([1.0, 5.0, 7.0]), weights_N=np.array([3.0, 1.0, 2.0]))
    assert weighted.tolist() == pytest.approx(repeated[[0, 3, 4]].tolist())


@pytest.mark.parametrize(
    ("advantages_N", "weights_N", "message"),
    [
        pytest.param(np.zeros((2, 3)), None, r"got shape \[2, 3\]", id="not a series"),
        pytest.param(np.zeros(0), None, r"got shape \[0\]", id="an empty batch"),
        pytest.param(np.zeros(3, dtype=np.int64), None, "got int64", id="integers"),
        pytest.param(np.array([0.0, np.nan]), None, "finite", id="not a number"),
        pytest.param(np.zeros(3), np.ones(2), r"weights_N \[2\]", id="a weight too few"),
        pytest.param(np.zeros(2), np.array([1.0, -1.0]), "at least 0", id="negative weight"),
        pytest.param(np.zeros(2), np.zeros(2), "not all 0", id="nothing weighs anything"),
    ],
)
def test_refused(
    advantages_N: NDArray[np.float64], weights_N: NDArray[np.float64] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        normalize_advantages(advantages_N, weights_N=weights_N)
