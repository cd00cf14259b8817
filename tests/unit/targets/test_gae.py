"""Generalized advantages: three steps by hand, the limits in λ, and the definition itself."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from forethought.targets.returns import Advantages, discounted_returns, generalized_advantages

# Three steps, γ = 0.5, λ = 0.8, so γλ = 0.4:
#
#   t              0      1      2
#   reward         1      0      2
#   value          2      4      1
#   next value     4      1      0 if terminated, else the bootstrap value 6
#
#   terminated     δ2 = 2 + 0.5 * 0 - 1 =  1      A2 =  1
#                  δ1 = 0 + 0.5 * 1 - 4 = -3.5    A1 = -3.5 + 0.4 * 1      = -3.1
#                  δ0 = 1 + 0.5 * 4 - 2 =  1      A0 =  1   + 0.4 * (-3.1) = -0.24
#
#   otherwise      δ2 = 2 + 0.5 * 6 - 1 =  4      A2 =  4
#                  δ1 as above                    A1 = -3.5 + 0.4 * 4      = -1.9
#                  δ0 as above                    A0 =  1   + 0.4 * (-1.9) =  0.24
#
#   returns are advantage + value.
REWARDS_T = np.array([1.0, 0.0, 2.0])
VALUES_T = np.array([2.0, 4.0, 1.0])


@pytest.mark.parametrize(
    ("terminated", "bootstrap_value", "advantages", "returns"),
    [
        pytest.param(
            True, None, [-0.24, -3.1, 1.0], [1.76, 0.9, 2.0], id="terminated: nothing follows"
        ),
        pytest.param(
            False, 6.0, [0.24, -1.9, 4.0], [2.24, 2.1, 5.0], id="truncated or cut: bootstrapped"
        ),
    ],
)
def test_three_steps_by_hand(
    terminated: bool,
    bootstrap_value: float | None,
    advantages: list[float],
    returns: list[float],
) -> None:
    result = generalized_advantages(
        rewards_T=REWARDS_T,
        values_T=VALUES_T,
        terminated=terminated,
        bootstrap_value=bootstrap_value,
        gamma=0.5,
        gae_lambda=0.8,
    )
    assert result.advantages_T.tolist() == pytest.approx(advantages)
    assert result.returns_T.tolist() == pytest.approx(returns)


@pytest.mark.parametrize(
    ("terminated", "bootstrap_value", "advantages"),
    [
        pytest.param(True, None, [1.0, -3.5, 1.0], id="terminated"),
        pytest.param(False, 6.0, [1.0, -3.5, 4.0], id="truncated or cut"),
    ],
)
def test_lambda_0_is_one_step_temporal_difference(
    terminated: bool, bootstrap_value: float | None, advantages: list[float]
) -> None:
    """Each step's own δ from the table above."""
    result = generalized_advantages(
        rewards_T=REWARDS_T,
        values_T=VALUES_T,
        terminated=terminated,
        bootstrap_value=bootstrap_value,
        gamma=0.5,
        gae_lambda=0.0,
    )
    assert result.advantages_T.tolist() == pytest.approx(advantages)


@pytest.mark.parametrize("gamma", [1.0, 0.5])
@pytest.mark.parametrize(("terminated", "bootstrap_value"), [(True, None), (False, 6.0)])
def test_lambda_1_is_monte_carlo(
    gamma: float, terminated: bool, bootstrap_value: float | None
) -> None:
    """The return that came, minus the value expected: the critic inside the run cancels out."""
    result = generalized_advantages(
        rewards_T=REWARDS_T,
        values_T=VALUES_T,
        terminated=terminated,
        bootstrap_value=bootstrap_value,
        gamma=gamma,
        gae_lambda=1.0,
    )
    returns_T = discounted_returns(
        rewards_T=REWARDS_T, terminated=terminated, bootstrap_value=bootstrap_value, gamma=gamma
    )
    assert result.returns_T.tolist() == pytest.approx(returns_T.tolist())
    assert result.advantages_T.tolist() == pytest.approx((returns_T - VALUES_T).tolist())


def by_definition(
    rewards: list[float], values: list[float], last_value: float, gamma: float, gae_lambda: float
) -> list[float]:
    """Schulman et al. 2016, Eq. 11-16, as they stand: a mean of k-step advantages.

    A_t = (1 - λ) (A_t^(1) + λ A_t^(2) + ...), where the longest look ahead that the
    run allows also gets the weight of all that would look further.
    """
    values = [*values, last_value]
    advantages: list[float] = []
    for t in range(len(rewards)):
        longest = len(rewards) - t
        mixture = 0.0
        for k in range(1, longest + 1):
            looked_ahead = math.fsum(gamma**i * rewards[t + i] for i in range(k))
            k_step_advantage = looked_ahead + gamma**k * values[t + k] - values[t]
            weight = gae_lambda ** (k - 1) * (1.0 if k == longest else 1 - gae_lambda)
            mixture += weight * k_step_advantage
        advantages.append(mixture)
    return advantages


@settings(deadline=None)  # a busy machine is not a failure
@given(
    steps=st.lists(st.tuples(st.floats(-10, 10), st.floats(-10, 10)), min_size=1, max_size=8),
    bootstrap_value=st.none() | st.floats(-10, 10),
    gamma=st.floats(0, 1),
    gae_lambda=st.floats(0, 1),
)
def test_equals_the_definition(
    steps: list[tuple[float, float]],
    bootstrap_value: float | None,
    gamma: float,
    gae_lambda: float,
) -> None:
    rewards, values = [reward for reward, _ in steps], [value for _, value in steps]
    result = generalized_advantages(
        rewards_T=np.array(rewards),
        values_T=np.array(values),
        terminated=bootstrap_value is None,
        bootstrap_value=bootstrap_value,
        gamma=gamma,
        gae_lambda=gae_lambda,
    )
    expected = by_definition(rewards, values, bootstrap_value or 0.0, gamma, gae_lambda)
    assert result.advantages_T.tolist() == pytest.approx(expected, abs=1e-9)
    assert result.returns_T.tolist() == pytest.approx(np.add(expected, values), abs=1e-9)


def test_float32_is_computed_in_float64() -> None:
    """0.1 has no exact float32, so what is added to it tells where the arithmetic was done."""
    result = generalized_advantages(
        rewards_T=np.array([0.1, 1e-6], dtype=np.float32),
        values_T=np.zeros(2, dtype=np.float32),
        terminated=True,
        bootstrap_value=None,
        gamma=1.0,
        gae_lambda=1.0,
    )
    assert result.advantages_T.dtype == result.returns_T.dtype == np.float64
    assert result.advantages_T[0] == float(np.float32(0.1)) + float(np.float32(1e-6))


def three_steps(
    *,
    rewards_T: NDArray[np.float64] = REWARDS_T,
    values_T: NDArray[np.float64] = VALUES_T,
    terminated: bool = True,
    bootstrap_value: float | None = None,
    gamma: float = 0.9,
    gae_lambda: float = 0.95,
) -> Advantages:
    return generalized_advantages(
        rewards_T=rewards_T,
        values_T=values_T,
        terminated=terminated,
        bootstrap_value=bootstrap_value,
        gamma=gamma,
        gae_lambda=gae_lambda,
    )


@pytest.mark.parametrize(
    ("override", "message"),
    [
        pytest.param({"rewards_T": np.zeros(0)}, r"rewards_T.*got shape \[0\]", id="no steps"),
        pytest.param({"rewards_T": np.zeros((3, 1))}, r"got shape \[3, 1\]", id="a column"),
        pytest.param({"values_T": np.zeros(4)}, r"values_T \[4\]", id="a value too many"),
        pytest.param({"values_T": np.zeros(3, dtype=np.int64)}, "got int64", id="integers"),
        pytest.param({"values_T": np.zeros(3, dtype=np.float16)}, "got float16", id="half floats"),
        pytest.param({"rewards_T": np.array([0, np.inf, 0])}, "finite", id="infinite reward"),
        pytest.param({"values_T": np.array([0, np.nan, 0])}, "finite", id="value is NaN"),
        pytest.param({"gamma": 1.01}, "gamma: expected 0 to 1, got 1.01", id="gamma above 1"),
        pytest.param({"gamma": -0.1}, "gamma: expected 0 to 1, got -0.1", id="gamma below 0"),
        pytest.param({"gae_lambda": 1.01}, "gae_lambda: expected 0 to 1", id="lambda above 1"),
        pytest.param({"bootstrap_value": 6.0}, "None after termination", id="end and future"),
        pytest.param({"terminated": False}, "got None", id="neither end nor future"),
    ],
)
def test_refused(override: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        three_steps(**override)  # type: ignore[arg-type]
