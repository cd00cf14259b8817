"""What is asked of answers one by one: consistency of the action, and KTO; by hand."""

from math import log

import pytest
import torch

from forethought.losses.preference import kto_loss
from forethought.losses.thought_preference import action_consistency_loss


@pytest.mark.parametrize(
    ("action", "reference", "loss", "slope"),
    [
        # 2 p (p - q)
        pytest.param(0.5, 0.25, 0.0625, 2 * 0.5 * 0.25, id="more probable: drawn back"),
        pytest.param(0.25, 0.5, 0.0625, 2 * 0.25 * -0.25, id="less probable: drawn back"),
        pytest.param(0.5, 0.5, 0.0, 0.0, id="as before: left alone"),
    ],
)
def test_action_consistency(action: float, reference: float, loss: float, slope: float) -> None:
    action_P = torch.tensor([log(action)], requires_grad=True)
    result = action_consistency_loss(
        action_P=action_P, reference_action_P=torch.tensor([log(reference)])
    )
    assert result.item() == pytest.approx(loss)
    assert torch.autograd.grad(result, action_P)[0].item() == pytest.approx(slope)


def test_action_consistency_is_a_mean_over_pairs() -> None:
    result = action_consistency_loss(
        action_P=torch.tensor([log(0.5), log(0.5)]),
        reference_action_P=torch.tensor([log(0.25), log(0.5)]),
    )
    assert result.item() == pytest.approx(0.0625 / 2)


@pytest.mark.parametrize(
    ("desirable", "loss", "slope"),
    [
        # r = log 4, z = log 2, β = 1: σ(log 2) = 2/3, σ(-log 2) = 1/3, σ(1 - σ) = 2/9.
        pytest.param(True, 1 - 2 / 3, -2 / 9, id="desirable: upwards"),
        pytest.param(False, 1 - 1 / 3, 2 / 9, id="undesirable: downwards"),
    ],
)
def test_kto(desirable: bool, loss: float, slope: float) -> None:
    ratios_B = torch.tensor([log(4)], requires_grad=True)
    result = kto_loss(
        log_ratios_B=ratios_B,
        is_desirable_B=torch.tensor([desirable]),
        reference_point=log(2),
        beta=1.0,
    )
    assert result.item() == pytest.approx(loss)
    assert torch.autograd.grad(result, ratios_B)[0].item() == pytest.approx(slope)


def test_kto_weighs_the_two_kinds_apart() -> None:
    """σ = 1/2 at the reference point: (3/2 + 5/2) / 2."""
    result = kto_loss(
        log_ratios_B=torch.tensor([log(2), log(2)]),
        is_desirable_B=torch.tensor([True, False]),
        reference_point=log(2),
        beta=2.0,
        desirable_weight=3.0,
        undesirable_weight=5.0,
    )
    assert result.item() == pytest.approx(2.0)


def test_refused() -> None:
    with pytest.raises(ValueError, match=r"is_desirable_B: expected bool, got torch\.int64"):
        kto_loss(
            log_ratios_B=torch.zeros(1),
            is_desirable_B=torch.tensor([1]),
            reference_point=0.0,
            beta=1.0,
        )
    with pytest.raises(ValueError, match="reference_action_P: expected data without gradient"):
        action_consistency_loss(
            action_P=torch.zeros(1), reference_action_P=torch.zeros(1, requires_grad=True)
        )
    with pytest.raises(ValueError, match="reference_point: expected 0 or more, got -1"):
        kto_loss(
            log_ratios_B=torch.zeros(1),
            is_desirable_B=torch.tensor([True]),
            reference_point=-1.0,
            beta=1.0,
        )
