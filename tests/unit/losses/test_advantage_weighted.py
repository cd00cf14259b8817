"""Weighted imitation by hand: which tokens count, how much, and the slope in each."""

import pytest
import torch
from torch import Tensor

from forethought.losses.cross_entropy import advantage_weighted_loss, token_mean_cross_entropy

LOGPROBS = [-1.0, -2.0, -0.5]


@pytest.mark.parametrize(
    ("answers", "weights", "loss", "gradient"),
    [
        # (2 · 1 + 2 · 2 + 0.5 · 0.5) / 3: both tokens of the first answer have its weight.
        pytest.param(
            [0, 0, 1], [2.0, 0.5], 6.25 / 3, [-2 / 3, -2 / 3, -1 / 6], id="a good one and a bad one"
        ),
        pytest.param([0, 0, 1], [1.0, 1.0], 3.5 / 3, [-1 / 3] * 3, id="alike: imitation"),
        pytest.param([0, 0, 1], [0.0, 1.0], 0.5 / 3, [0.0, 0.0, -1 / 3], id="one without weight"),
        pytest.param([1, 0, 1], [3.0, 1.0], 7.5 / 3, [-1 / 3, -1.0, -1 / 3], id="in another order"),
    ],
)
def test_value_and_gradient(
    answers: list[int], weights: list[float], loss: float, gradient: list[float]
) -> None:
    logprobs_N = torch.tensor(LOGPROBS, requires_grad=True)
    found = advantage_weighted_loss(
        logprobs_N=logprobs_N, completions_N=torch.tensor(answers), weights_U=torch.tensor(weights)
    )
    found.backward()
    assert found.item() == pytest.approx(loss)
    assert logprobs_N.grad is not None
    assert logprobs_N.grad.tolist() == pytest.approx(gradient)


def test_equal_weights_are_imitation() -> None:
    logprobs_N = torch.tensor(LOGPROBS)
    whole = token_mean_cross_entropy(
        logprobs_BT=logprobs_N[None], mask_BT=torch.ones(1, 3, dtype=torch.bool)
    )
    found = advantage_weighted_loss(
        logprobs_N=logprobs_N, completions_N=torch.tensor([0, 1, 1]), weights_U=torch.ones(2)
    )
    assert found.item() == whole.loss.item()


TWO, ANSWERS = torch.ones(2), torch.tensor([0, 0])


@pytest.mark.parametrize(
    ("logprobs", "answers", "weights", "message"),
    [
        pytest.param(TWO, torch.tensor([0]), TWO, "expected one shape", id="shapes"),
        pytest.param(TWO.double(), ANSWERS, TWO, "expected float32", id="precision"),
        pytest.param(
            TWO, ANSWERS, TWO.clone().requires_grad_(), "without gradient", id="a weight learns"
        ),
        pytest.param(TWO, ANSWERS, -TWO, "weights_U: expected at least 0", id="a negative weight"),
        pytest.param(TWO, ANSWERS.float(), TWO, "expected tokens, int64", id="no indices"),
        pytest.param(TWO[:0], ANSWERS[:0], TWO, "expected tokens, int64", id="nothing"),
    ],
)
def test_refused(logprobs: Tensor, answers: Tensor, weights: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        advantage_weighted_loss(logprobs_N=logprobs, completions_N=answers, weights_U=weights)
