"""ILQL's terms by hand: values, and slopes in what is learned."""

from math import exp, log

import pytest
import torch
from torch import Tensor

from forethought.losses.ilql import conservative_loss, double_q_loss, expectile_loss


def test_both_q_go_to_the_target() -> None:
    """Errors 1 and -0.5, then 0 and 2: (1 + 0.25 + 0 + 4) / 2; slopes 2 e / 2."""
    first_N = torch.tensor([2.0, 3.0], requires_grad=True)
    second_N = torch.tensor([0.5, 5.0], requires_grad=True)
    result = double_q_loss(first_N=first_N, second_N=second_N, targets_N=torch.tensor([1.0, 3.0]))
    result.loss.backward()
    assert result.loss.item() == pytest.approx(2.625)
    assert result.gap.item() == pytest.approx(1.75)
    assert first_N.grad is not None
    assert first_N.grad.tolist() == pytest.approx([1.0, 0.0])
    assert second_N.grad is not None
    assert second_N.grad.tolist() == pytest.approx([-0.5, 2.0])


@pytest.mark.parametrize(
    ("value", "expectile", "loss", "slope"),
    [
        pytest.param(1.0, 0.7, 0.7 * 4, -0.7 * 4, id="below what was got: pulled up"),
        pytest.param(5.0, 0.7, 0.3 * 4, 0.3 * 4, id="above: pulled down less"),
        pytest.param(3.0, 0.7, 0.0, 0.0, id="equal"),
        pytest.param(1.0, 0.5, 0.5 * 4, -0.5 * 4, id="half: below"),
        pytest.param(5.0, 0.5, 0.5 * 4, 0.5 * 4, id="half: above, as much"),
        pytest.param(5.0, 0.1, 0.9 * 4, 0.9 * 4, id="towards the lowest"),
    ],
)
def test_expectile(value: float, expectile: float, loss: float, slope: float) -> None:
    values_N = torch.tensor([value], requires_grad=True)
    found = expectile_loss(values_N=values_N, targets_N=torch.tensor([3.0]), expectile=expectile)
    found.backward()
    assert found.item() == pytest.approx(loss)
    assert values_N.grad is not None
    assert values_N.grad.item() == pytest.approx(slope)


def test_least_at_the_expectile() -> None:
    """Of 0, 0, 0 and 1 the 0.7 expectile: 0.3 · 3 V = 0.7 (1 - V), so V = 0.4375; mean over 4."""
    values_N = torch.full((4,), 0.4375, requires_grad=True)
    targets_N = torch.tensor([0.0, 0.0, 0.0, 1.0])
    expectile_loss(values_N=values_N, targets_N=targets_N, expectile=0.7).backward()
    assert values_N.grad is not None
    assert values_N.grad.sum().item() == pytest.approx(0.0, abs=1e-6)
    assert values_N.grad[3].item() == pytest.approx(-0.7 * 2 * 0.5625 / 4)


def test_conservative() -> None:
    """Q = 1, 0, 0 and the data's action the first: log(e + 2) - 1; slopes softmax - 1{a}."""
    q_NV = torch.tensor([[1.0, 0.0, 0.0]], requires_grad=True)
    loss = conservative_loss(q_NV=q_NV, actions_N=torch.tensor([0]))
    loss.backward()
    assert loss.item() == pytest.approx(log(exp(1) + 2) - 1)
    total = exp(1) + 2
    assert q_NV.grad is not None
    assert q_NV.grad[0].tolist() == pytest.approx([exp(1) / total - 1, 1 / total, 1 / total])


def test_conservative_is_a_mean_over_states() -> None:
    q_NV = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
    actions_N = torch.tensor([0, 0])
    each = [conservative_loss(q_NV=q_NV[[n]], actions_N=actions_N[[n]]).item() for n in (0, 1)]
    assert conservative_loss(q_NV=q_NV, actions_N=actions_N).item() == pytest.approx(sum(each) / 2)


TWO, NONE = torch.ones(2), torch.ones(0)


@pytest.mark.parametrize(
    ("first", "targets", "message"),
    [
        pytest.param(TWO, torch.ones(3), "expected one shape", id="shapes"),
        pytest.param(TWO.double(), TWO, "expected float32", id="precision"),
        pytest.param(TWO, TWO.clone().requires_grad_(), "without gradient", id="a target learns"),
        pytest.param(NONE, NONE, "expected actions, got none", id="nothing"),
    ],
)
def test_refused(first: Tensor, targets: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        double_q_loss(first_N=first, second_N=first, targets_N=targets)
    with pytest.raises(ValueError, match=message):
        expectile_loss(values_N=first, targets_N=targets, expectile=0.7)


def test_refused_otherwise() -> None:
    with pytest.raises(ValueError, match="expectile: expected between 0 and 1, got 1"):
        expectile_loss(values_N=TWO, targets_N=TWO, expectile=1.0)
    with pytest.raises(ValueError, match="expected one action per state"):
        conservative_loss(q_NV=torch.ones(2, 3), actions_N=torch.tensor([0]))
    with pytest.raises(ValueError, match="expected float32"):
        conservative_loss(q_NV=torch.ones(1, 3).double(), actions_N=torch.tensor([0]))
