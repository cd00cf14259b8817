"""Micro-batches, each mean times its share of what counts, give the whole batch's gradient.

Ten elements in five rows, of which the mask keeps seven, unevenly; one micro-batch of a
single row, one of four. What the training loops do stands in `accumulated`.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from forethought.losses.cross_entropy import token_mean_cross_entropy
from forethought.losses.elements import Aggregation, masked_mean
from forethought.losses.ppo import clipped_policy_loss, clipped_value_loss, token_entropy

Loss = Callable[[Tensor, Tensor, slice], Tensor]  # (parameters, mask, rows) -> mean over the rows

MASK_BT = torch.tensor([[1, 1], [1, 0], [1, 1], [0, 1], [1, 0]], dtype=torch.bool)
ADVANTAGES_BT = torch.tensor([[2.0, 2.0], [-1.0, -1.0], [3.0, 3.0], [-4.0, -4.0], [0.5, 0.5]])
MICRO_BATCHES = (slice(0, 1), slice(1, 5))


def cross_entropy(parameters: Tensor, mask: Tensor, rows: slice) -> Tensor:
    return token_mean_cross_entropy(logprobs_BT=parameters[rows], mask_BT=mask[rows]).loss


def token_policy(parameters: Tensor, mask: Tensor, rows: slice) -> Tensor:
    return clipped_policy_loss(
        logprobs=parameters[rows],
        old_logprobs=torch.zeros(5, 2)[rows],
        advantages=ADVANTAGES_BT[rows],
        mask=mask[rows],
        clip=0.2,
    ).loss


def step_policy(parameters: Tensor, mask: Tensor, rows: slice) -> Tensor:
    return clipped_policy_loss(
        logprobs=parameters[rows, 0],
        old_logprobs=torch.zeros(5)[rows],
        advantages=ADVANTAGES_BT[rows, 0],
        mask=mask[rows],
        clip=0.2,
    ).loss


def value(parameters: Tensor, mask: Tensor, rows: slice) -> Tensor:
    return clipped_value_loss(
        values_B=parameters[rows, 0],
        old_values_B=torch.zeros(5)[rows],
        returns_B=ADVANTAGES_BT[rows, 0],
        clip=0.2,
        mask_B=mask[rows],
    ).loss


def entropy(parameters: Tensor, mask: Tensor, rows: slice) -> Tensor:
    logits_BTV = torch.stack([parameters[rows], -parameters[rows]], dim=2)
    return masked_mean(values=token_entropy(logprobs_V=logits_BTV.log_softmax(-1)), mask=mask[rows])


def accumulated(loss: Loss, parameters: Tensor, mask: Tensor) -> float:
    total = mask.sum()
    whole = 0.0
    for rows in MICRO_BATCHES:
        part = loss(parameters, mask, rows) * (mask[rows].sum() / total)
        part.backward()  # adds to parameters.grad
        whole += part.item()
    return whole


@pytest.mark.parametrize(
    ("loss", "mask"),
    [
        pytest.param(cross_entropy, MASK_BT, id="cross-entropy"),
        pytest.param(token_policy, MASK_BT, id="policy, tokens"),
        pytest.param(step_policy, MASK_BT[:, 0], id="policy, steps"),
        pytest.param(value, MASK_BT[:, 0], id="value"),
        pytest.param(entropy, MASK_BT, id="entropy"),
    ],
)
def test_accumulated_equals_whole(loss: Loss, mask: Tensor) -> None:
    start = torch.linspace(-0.5, 0.4, 10).reshape(5, 2)  # on both sides of every clip
    whole, parts = start.clone().requires_grad_(), start.clone().requires_grad_()
    expected = loss(whole, mask, slice(0, 5))
    expected.backward()
    assert accumulated(loss, parts, mask) == pytest.approx(expected.item(), rel=1e-5)
    assert whole.grad is not None
    assert whole.grad.abs().sum() > 0
    torch.testing.assert_close(parts.grad, whole.grad)


def test_mean_of_means_is_another_gradient() -> None:
    """Why the share is needed: plain averages weigh a lonely token like four."""
    whole, parts = torch.zeros(5, 2, requires_grad=True), torch.zeros(5, 2, requires_grad=True)
    cross_entropy(whole, MASK_BT, slice(0, 5)).backward()
    for rows in MICRO_BATCHES:
        (cross_entropy(parts, MASK_BT, rows) / len(MICRO_BATCHES)).backward()
    assert whole.grad is not None
    assert parts.grad is not None
    assert whole.grad[0].tolist() == pytest.approx([-1 / 7, -1 / 7])
    assert parts.grad[0].tolist() == pytest.approx([-1 / 4, -1 / 4])


@pytest.mark.parametrize("aggregation", ["sequence_mean", "sequence_sum"])
def test_answers_are_shared_by_their_number(aggregation: Aggregation) -> None:
    """One row of five, then four: shares 1/5 and 4/5, whatever their tokens number."""

    def loss(parameters: Tensor, rows: slice) -> Tensor:
        return clipped_policy_loss(
            logprobs=parameters[rows],
            old_logprobs=torch.zeros(5, 2)[rows],
            advantages=ADVANTAGES_BT[rows],
            mask=MASK_BT[rows],
            clip=0.2,
            aggregation=aggregation,
        ).loss

    start = torch.linspace(-0.5, 0.4, 10).reshape(5, 2)  # on both sides of the clip
    whole, parts = start.clone().requires_grad_(), start.clone().requires_grad_()
    loss(whole, slice(0, 5)).backward()
    for rows in MICRO_BATCHES:
        (loss(parts, rows) * (rows.stop - rows.start) / 5).backward()
    assert whole.grad is not None
    assert whole.grad.abs().sum() > 0
    torch.testing.assert_close(parts.grad, whole.grad)
