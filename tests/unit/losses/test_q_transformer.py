"""Q-Transformer's loss and targets by hand: values, and slopes in each region."""

from math import exp, log

import pytest
import torch
from torch import Tensor

from forethought.losses.q_transformer import (
    OFFSET,
    q_transformer_loss,
    q_transformer_targets,
    q_values,
)


def test_values_are_odds() -> None:
    """Logits at the offset are values of a half; log 3 above it three to one; in order."""
    logits_NV = torch.tensor([[OFFSET, OFFSET + log(3), OFFSET - log(3), 0.0]])
    expected = [0.5, 0.75, 0.25, 1 / (1 + exp(OFFSET))]
    assert q_values(logits_NV)[0].tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("taken", "others", "target", "weight", "loss", "slopes"),
    [
        pytest.param(
            0.5, (0.0, 0.0), 0.8, 1.0, 0.045, (-0.3, 0.0, 0.0), id="below its target: raised"
        ),
        pytest.param(
            0.5, (0.0, 0.0), 0.1, 1.0, 0.08, (0.4, 0.0, 0.0), id="above its target: lowered"
        ),
        pytest.param(
            # ½ 0.3² + ½ (0.4² + 0.2²) / 2; each other one's slope Q / 2.
            0.5,
            (0.4, 0.2),
            0.8,
            1.0,
            0.045 + 0.05,
            (-0.3, 0.2, 0.1),
            id="what was not taken: to 0",
        ),
        pytest.param(0.5, (0.4, 0.2), 0.8, 0.0, 0.045, (-0.3, 0.0, 0.0), id="alpha 0: left alone"),
        pytest.param(
            0.5, (0.4, 0.2), 0.5, 0.5, 0.025, (0.0, 0.1, 0.05), id="at its target, alpha a half"
        ),
    ],
)
def test_one_state(
    taken: float,
    others: tuple[float, float],
    target: float,
    weight: float,
    loss: float,
    slopes: tuple[float, float, float],
) -> None:
    q_NV = torch.tensor([[others[0], taken, others[1]]], requires_grad=True)
    result = q_transformer_loss(
        q_NV=q_NV,
        actions_N=torch.tensor([1]),
        targets_N=torch.tensor([target]),
        conservative_weight=weight,
    )
    result.loss.backward()
    assert result.loss.item() == pytest.approx(loss)
    assert q_NV.grad is not None
    assert q_NV.grad[0].tolist() == pytest.approx([slopes[1], slopes[0], slopes[2]])


def test_a_mean_over_states() -> None:
    """Regression (0.3² + 0.1²) / 4 = 0.025; others (0.2² + 0.6²) / 4 = 0.1."""
    q_NV = torch.tensor([[0.5, 0.2], [0.6, 0.9]])
    result = q_transformer_loss(
        q_NV=q_NV,
        actions_N=torch.tensor([0, 1]),
        targets_N=torch.tensor([0.8, 1.0]),
        conservative_weight=2.0,
    )
    assert result.regression.item() == pytest.approx(0.025)
    assert result.conservative.item() == pytest.approx(0.1)
    assert result.loss.item() == pytest.approx(0.225)


@pytest.mark.parametrize(
    ("reward", "discount", "best", "followed", "target"),
    [
        pytest.param(0.0, 1.0, 0.6, 0.2, 0.6, id="within an action: the next dimension's best"),
        pytest.param(0.25, 0.98, 0.5, 0.0, 0.74, id="its last dimension: reward and next state"),
        pytest.param(0.0, 0.98, 0.1, 0.7, 0.7, id="the data did better: their return"),
        pytest.param(1.0, 0.0, 9.0, 1.0, 1.0, id="the end: no state follows"),
        pytest.param(0.0, 0.0, float("nan"), 0.0, 0.0, id="the end: whatever is said of it"),
    ],
)
def test_target(
    reward: float, discount: float, best: float, followed: float, target: float
) -> None:
    numbers = [torch.tensor([one]) for one in (reward, discount, best, followed)]
    found_N = q_transformer_targets(
        rewards_N=numbers[0],
        discounts_N=numbers[1],
        next_best_N=numbers[2],
        returns_N=numbers[3],
    )
    assert found_N.tolist() == pytest.approx([target])


def test_each_step_has_its_own_bound() -> None:
    """Returns 0.9 and 0.1, both with 0.5 behind them: the first alone is raised."""
    found_N = q_transformer_targets(
        rewards_N=torch.zeros(2),
        discounts_N=torch.ones(2),
        next_best_N=torch.full((2,), 0.5),
        returns_N=torch.tensor([0.9, 0.1]),
    )
    assert found_N.tolist() == pytest.approx([0.9, 0.5])


def test_targets_carry_no_gradient() -> None:
    found_N = q_transformer_targets(
        rewards_N=torch.zeros(1),
        discounts_N=torch.ones(1),
        next_best_N=torch.tensor([0.5], requires_grad=True),
        returns_N=torch.zeros(1),
    )
    assert not found_N.requires_grad


ROW, ONE = torch.tensor([[0.5, 0.2]]), torch.tensor([0])


@pytest.mark.parametrize(
    ("q", "actions", "targets", "weight", "message"),
    [
        pytest.param(ROW[0], ONE, torch.ones(1), 1.0, r"expected \[N, V\]", id="axes"),
        pytest.param(ROW, ONE, torch.ones(2), 1.0, "one action and one target", id="shapes"),
        pytest.param(ROW.double(), ONE, torch.ones(1), 1.0, "float32", id="precision"),
        pytest.param(ROW[:, :1], ONE, torch.ones(1), 1.0, "two bins or more", id="one bin"),
        pytest.param(ROW, ONE, torch.ones(1), -1.0, "weight of 0 or more", id="weight"),
        pytest.param(ROW[:0], ONE[:0], torch.ones(0), 1.0, "one action", id="none"),
        pytest.param(
            ROW, ONE, torch.ones(1, requires_grad=True), 1.0, "without gradient", id="gradient"
        ),
    ],
)
def test_refused(q: Tensor, actions: Tensor, targets: Tensor, weight: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        q_transformer_loss(q_NV=q, actions_N=actions, targets_N=targets, conservative_weight=weight)


@pytest.mark.parametrize(
    ("discount", "best", "message"),
    [(1.5, 0.0, "0 to 1"), (0.5, float("inf"), "finite")],
)
def test_refused_targets(discount: float, best: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        q_transformer_targets(
            rewards_N=torch.zeros(1),
            discounts_N=torch.tensor([discount]),
            next_best_N=torch.tensor([best]),
            returns_N=torch.zeros(1),
        )
