"""Weights of actions by hand: each side of the mean, and of the cap."""

from math import exp, log

import pytest
import torch

from forethought.targets.token_values import advantage_weights, effective_share


@pytest.mark.parametrize(
    ("advantage", "beta", "weight", "is_capped"),
    [
        pytest.param(0.0, 2.0, 1.0, False, id="as good as expected"),
        pytest.param(0.5, 2.0, exp(1.0), False, id="better"),
        pytest.param(-0.5, 2.0, exp(-1.0), False, id="worse"),
        pytest.param(-50.0, 2.0, 0.0, False, id="much worse"),
        pytest.param(1.4, 2.0, exp(2.8), False, id="just below the cap"),
        pytest.param(1.6, 2.0, 20.0, True, id="above the cap"),
        pytest.param(1e6, 2.0, 20.0, True, id="where the exponential overflows"),
        pytest.param(1e6, 0.0, 1.0, False, id="beta 0: all alike"),
    ],
)
def test_region(advantage: float, beta: float, weight: float, is_capped: bool) -> None:
    assert 2.8 < log(20.0) < 3.2
    found = advantage_weights(advantages_U=torch.tensor([advantage]), beta=beta, cap=20.0)
    assert found.weights_U.tolist() == pytest.approx([weight], rel=1e-5, abs=1e-12)
    assert found.is_capped_U.tolist() == [is_capped]


@pytest.mark.parametrize(
    ("weights", "share"),
    [
        pytest.param([2.0, 2.0, 2.0], 1.0, id="all alike"),
        pytest.param([5.0, 0.0, 0.0], 1 / 3, id="one has all"),
        pytest.param([3.0, 1.0], 16 / 20, id="between"),
        pytest.param([0.0, 0.0], 0.0, id="none has any"),
    ],
)
def test_effective_share(weights: list[float], share: float) -> None:
    squares = sum(weight**2 for weight in weights)
    found = effective_share(count=len(weights), total=sum(weights), squares=squares)
    assert found == pytest.approx(share)


def test_refused() -> None:
    with pytest.raises(ValueError, match="expected finite numbers"):
        advantage_weights(advantages_U=torch.tensor([float("nan")]), beta=1.0, cap=20.0)
    with pytest.raises(ValueError, match="expected float32"):
        advantage_weights(advantages_U=torch.ones(1).double(), beta=1.0, cap=20.0)
    for beta, cap in ((-1.0, 20.0), (1.0, 0.5)):
        with pytest.raises(ValueError, match="a beta of 0 or more and a cap of 1 or more"):
            advantage_weights(advantages_U=torch.ones(1), beta=beta, cap=cap)
