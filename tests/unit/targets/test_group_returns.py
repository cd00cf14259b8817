"""Returns of a group or a batch by hand, and what holds for any of them."""

from collections.abc import Callable
from math import sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from forethought.targets.episode_advantages import (
    batch_normalized_advantages,
    group_centered_advantages,
    group_normalized_advantages,
    leave_one_out_advantages,
)

Estimator = Callable[[NDArray[np.float64]], NDArray[np.float64]]
RLOO, GRPO, DR_GRPO = (
    leave_one_out_advantages,
    group_normalized_advantages,
    group_centered_advantages,
)


def reinforce_plus_plus(returns_N: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of episodes that are all of one length."""
    return batch_normalized_advantages(returns_N=returns_N, steps_N=np.full(returns_N.size, 3.0))


@pytest.mark.parametrize(
    ("estimator", "returns", "advantages"),
    [
        # the other one: 3 for the first, 1 for the second
        pytest.param(RLOO, [1.0, 3.0], [-2.0, 2.0], id="rloo, two"),
        # mean of the others: (2 + 7) / 2 = 4.5, (0 + 7) / 2 = 3.5, (0 + 2) / 2 = 1
        pytest.param(RLOO, [0.0, 2.0, 7.0], [-4.5, -1.5, 6.0], id="rloo, three"),
        # mean 2, squared deviations 1 and 1: std 1
        pytest.param(GRPO, [1.0, 3.0], [-1.0, 1.0], id="grpo, two"),
        # mean 3, squared deviations 9, 1, 16: std √(26/3)
        pytest.param(
            GRPO,
            [0.0, 2.0, 7.0],
            [-3 / sqrt(26 / 3), -1 / sqrt(26 / 3), 4 / sqrt(26 / 3)],
            id="grpo, three",
        ),
        # mean 2; nothing is divided
        pytest.param(DR_GRPO, [1.0, 3.0], [-1.0, 1.0], id="dr_grpo, two"),
        # mean 3
        pytest.param(DR_GRPO, [0.0, 2.0, 7.0], [-3.0, -1.0, 4.0], id="dr_grpo, three"),
        # mean 3, std √(26/3), all of one length
        pytest.param(
            reinforce_plus_plus,
            [0.0, 2.0, 7.0],
            [-3 / sqrt(26 / 3), -1 / sqrt(26 / 3), 4 / sqrt(26 / 3)],
            id="reinforce++, three",
        ),
    ],
)
def test_by_hand(estimator: Estimator, returns: list[float], advantages: list[float]) -> None:
    result = estimator(np.array(returns))
    assert result.dtype == np.float64
    assert result.tolist() == pytest.approx(advantages)


def test_long_episodes_weigh_more_in_the_batch() -> None:
    """Three steps of 0 and one of 4: mean 1, variance (3 · 1 + 1 · 9) / 4 = 3."""
    result = batch_normalized_advantages(
        returns_N=np.array([0.0, 4.0]), steps_N=np.array([3.0, 1.0])
    )
    assert result.tolist() == pytest.approx([-1 / sqrt(3), sqrt(3)])


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(RLOO, id="rloo"),
        pytest.param(GRPO, id="grpo"),
        pytest.param(DR_GRPO, id="dr_grpo"),
        pytest.param(reinforce_plus_plus, id="reinforce++"),
    ],
)
@pytest.mark.parametrize("size", [2, 3, 7])
def test_all_equal_is_exactly_zero(estimator: Estimator, size: int) -> None:
    """0.1 has no exact mean: what is left of it must not pass for a preference."""
    assert estimator(np.full(size, 0.1)).tolist() == [0.0] * size


RETURNS = st.lists(st.floats(-100, 100), min_size=2, max_size=10)


@settings(deadline=None)  # a busy machine is not a failure
@given(returns=RETURNS, shift=st.floats(-100, 100), scale=st.floats(0.1, 10))
@pytest.mark.parametrize(
    ("estimator", "has_units"),
    [
        pytest.param(RLOO, True, id="rloo"),
        pytest.param(GRPO, False, id="grpo"),
        pytest.param(DR_GRPO, True, id="dr_grpo"),
        pytest.param(reinforce_plus_plus, False, id="reinforce++"),
    ],
)
def test_mean_shift_and_scale(
    estimator: Estimator, has_units: bool, returns: list[float], shift: float, scale: float
) -> None:
    """What all get alike is no merit; a unit stays a unit, unless it was divided away."""
    returns_N = np.array(returns)
    assume(returns_N.std() > 1e-2)
    result = estimator(returns_N)
    assert result.mean() == pytest.approx(0.0, abs=1e-6)
    assert estimator(returns_N + shift).tolist() == pytest.approx(result.tolist(), abs=1e-4)
    scaled = scale * result if has_units else result
    assert estimator(scale * returns_N).tolist() == pytest.approx(scaled.tolist(), abs=1e-4)
    assert result[returns_N.argmax()] == result.max() > 0


@settings(deadline=None)  # a busy machine is not a failure
@given(returns=RETURNS)
def test_rloo_is_the_definition(returns: list[float]) -> None:
    """Another sum, with the episode itself never in it; and n / (n - 1) times Dr. GRPO."""
    expected = [
        own - float(np.mean(returns[:i] + returns[i + 1 :])) for i, own in enumerate(returns)
    ]
    result = leave_one_out_advantages(np.array(returns))
    assert result.tolist() == pytest.approx(expected, abs=1e-9)
    n = len(returns)
    centered = group_centered_advantages(np.array(returns))
    assert result.tolist() == pytest.approx((n / (n - 1) * centered).tolist(), abs=1e-9)


def test_float32_is_computed_in_float64() -> None:
    """A sum of 2**24 and 1 has no float32."""
    returns_N = np.array([2.0**24, 1.0, 0.0], dtype=np.float32)
    assert leave_one_out_advantages(returns_N).tolist() == [
        2**24 - 0.5,
        1 - 2.0**23,
        -(2**23) - 0.5,
    ]
    assert group_centered_advantages(returns_N).sum() == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(RLOO, id="rloo"),
        pytest.param(GRPO, id="grpo"),
        pytest.param(DR_GRPO, id="dr_grpo"),
    ],
)
@pytest.mark.parametrize(
    ("returns_N", "message"),
    [
        pytest.param(np.ones(1), "at least 2 episodes, got 1", id="a group of one"),
        pytest.param(np.ones(0), r"T > 0, got shape \[0\]", id="a group of none"),
        pytest.param(np.ones((2, 2)), r"got shape \[2, 2\]", id="several groups"),
        pytest.param(np.ones(2, dtype=np.int64), "got int64", id="integers"),
        pytest.param(np.array([0.0, np.nan]), "finite", id="not a number"),
    ],
)
def test_refused(estimator: Estimator, returns_N: NDArray[np.float64], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimator(returns_N)


def test_episodes_without_steps_are_refused() -> None:
    with pytest.raises(ValueError, match="not all 0"):
        batch_normalized_advantages(returns_N=np.ones(2), steps_N=np.zeros(2))
