"""The divergence of one token from its reference, value and gradient by hand."""

from math import log

import pytest
import torch
from torch import Tensor

from forethought.losses.ppo import kl_to_reference


@pytest.mark.parametrize(
    ("logprob", "reference", "value", "gradient"),
    [
        pytest.param(log(0.5), log(0.5), 0.0, 0.0, id="both agree: nothing pulls"),
        # d = log(0.25 / 0.5): 1/2 - 1 + log 2; 1 - 1/2
        pytest.param(log(0.5), log(0.25), log(2) - 0.5, +0.5, id="likelier than before: down"),
        # d = log(0.5 / 0.25): 2 - 1 - log 2; 1 - 2
        pytest.param(log(0.25), log(0.5), 1 - log(2), -1.0, id="less likely than before: up"),
    ],
)
def test_value_and_gradient(
    logprob: float, reference: float, value: float, gradient: float
) -> None:
    logprobs_BT = torch.tensor([[logprob]], requires_grad=True)
    result = kl_to_reference(
        logprobs_BT=logprobs_BT,
        reference_logprobs_BT=torch.tensor([[reference]]),
        mask_BT=torch.tensor([[True]]),
    )
    result.backward()
    assert result.item() == pytest.approx(value, abs=1e-6)
    assert logprobs_BT.grad is not None
    assert logprobs_BT.grad.item() == pytest.approx(gradient, abs=1e-6)


def test_mean_is_over_the_tokens_that_count() -> None:
    """Two of three count, with d = 0 and log 2; the third would be infinite."""
    logprobs_BT = torch.tensor([[-1.0, log(0.25), -torch.inf]], requires_grad=True)
    result = kl_to_reference(
        logprobs_BT=logprobs_BT,
        reference_logprobs_BT=torch.tensor([[-1.0, log(0.5), 0.0]]),
        mask_BT=torch.tensor([[True, True, False]]),
    )
    result.backward()
    assert result.item() == pytest.approx((1 - log(2)) / 2, abs=1e-6)
    assert logprobs_BT.grad is not None
    assert logprobs_BT.grad.tolist() == [pytest.approx([0.0, -0.5, 0.0], abs=1e-6)]


def test_expectation_is_the_divergence() -> None:
    """Weighed by pi, the estimate is KL(pi || pi_ref) = sum pi log(pi / pi_ref) exactly."""
    policy_V, reference_V = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([0.3, 0.3, 0.4])
    estimates = [
        kl_to_reference(
            logprobs_BT=p.log().view(1, 1),
            reference_logprobs_BT=q.log().view(1, 1),
            mask_BT=torch.tensor([[True]]),
        )
        for p, q in zip(policy_V, reference_V, strict=True)
    ]
    expected = (policy_V * (policy_V / reference_V).log()).sum()
    assert float(policy_V @ torch.stack(estimates)) == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize(
    ("logprobs", "reference", "mask", "message"),
    [
        pytest.param(torch.zeros(2), torch.zeros(2), torch.ones(2).bool(), "B, T", id="no rows"),
        pytest.param(
            torch.zeros(2, 3), torch.zeros(1, 3), torch.ones(2, 3).bool(), "one shape", id="shapes"
        ),
        pytest.param(
            torch.zeros(1, 1).bfloat16(),
            torch.zeros(1, 1).bfloat16(),
            torch.ones(1, 1).bool(),
            "float32",
            id="bf16",
        ),
        pytest.param(
            torch.zeros(1, 1),
            torch.zeros(1, 1, requires_grad=True),
            torch.ones(1, 1).bool(),
            "without gradient",
            id="gradient of the reference",
        ),
        pytest.param(
            torch.zeros(1, 1), torch.zeros(1, 1), torch.zeros(1, 1).bool(), "got none", id="nothing"
        ),
    ],
)
def test_refused(logprobs: Tensor, reference: Tensor, mask: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kl_to_reference(logprobs_BT=logprobs, reference_logprobs_BT=reference, mask_BT=mask)
