"""Discounted returns by hand, and against the definition's plain sum."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from forethought.targets.returns import discounted_returns

REWARDS_T = np.array([1.0, 0.0, 2.0])


@pytest.mark.parametrize(
    ("terminated", "bootstrap_value", "gamma", "returns"),
    [
        # G2 = 2; G1 = 0 + 0.5 * 2; G0 = 1 + 0.5 * 1
        pytest.param(True, None, 0.5, [1.5, 1.0, 2.0], id="terminated: rewards alone"),
        # G2 = 2 + 0.5 * 6; G1 = 0.5 * 5; G0 = 1 + 0.5 * 2.5
        pytest.param(False, 6.0, 0.5, [2.25, 2.5, 5.0], id="truncated or cut: and what follows"),
        pytest.param(True, None, 1.0, [3.0, 2.0, 2.0], id="gamma=1: sum of what is to come"),
        pytest.param(False, 6.0, 0.0, [1.0, 0.0, 2.0], id="gamma=0: the next reward alone"),
    ],
)
def test_by_hand(
    terminated: bool, bootstrap_value: float | None, gamma: float, returns: list[float]
) -> None:
    returns_T = discounted_returns(
        rewards_T=REWARDS_T, terminated=terminated, bootstrap_value=bootstrap_value, gamma=gamma
    )
    assert returns_T.dtype == np.float64
    assert returns_T.tolist() == pytest.approx(returns)


@settings(deadline=None)  # a busy machine is not a failure
@given(
    rewards=st.lists(st.floats(-10, 10), min_size=1, max_size=8),
    bootstrap_value=st.none() | st.floats(-10, 10),
    gamma=st.floats(0, 1),
)
def test_equals_the_sum(rewards: list[float], bootstrap_value: float | None, gamma: float) -> None:
    """G_t = sum_k γ^k r_t+k, the value of what follows standing behind the last reward."""
    returns_T = discounted_returns(
        rewards_T=np.array(rewards),
        terminated=bootstrap_value is None,
        bootstrap_value=bootstrap_value,
        gamma=gamma,
    )
    extended = [*rewards, bootstrap_value or 0.0]
    for t, got in enumerate(returns_T):
        expected = math.fsum(gamma**k * reward for k, reward in enumerate(extended[t:]))
        assert got == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("rewards_T", "gamma", "message"),
    [
        pytest.param(np.zeros(0), 0.9, r"T > 0, got shape \[0\]", id="no steps"),
        pytest.param(np.zeros((1, 3)), 0.9, r"got shape \[1, 3\]", id="a batch"),
        pytest.param(np.zeros(3, dtype=np.int64), 0.9, "got int64", id="integers"),
        pytest.param(np.array([0.0, np.nan]), 0.9, "expected finite numbers", id="not a number"),
        pytest.param(np.zeros(3), 1.1, "gamma: expected 0 to 1, got 1.1", id="gamma above 1"),
        pytest.param(np.zeros(3), math.nan, "gamma: expected 0 to 1, got nan", id="gamma is NaN"),
    ],
)
def test_refused(rewards_T: NDArray[np.float64], gamma: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        discounted_returns(rewards_T=rewards_T, terminated=True, bootstrap_value=None, gamma=gamma)


@pytest.mark.parametrize(("terminated", "bootstrap_value"), [(True, 6.0), (False, None)])
def test_end_that_contradicts_itself_is_refused(
    terminated: bool, bootstrap_value: float | None
) -> None:
    with pytest.raises(ValueError, match="bootstrap_value"):
        discounted_returns(
            rewards_T=REWARDS_T, terminated=terminated, bootstrap_value=bootstrap_value, gamma=0.9
        )
