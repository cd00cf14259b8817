"""Entropy of distributions that can be worked out by hand."""

import math
from math import log

import pytest
import torch

from forethought.losses.ppo import token_entropy


@pytest.mark.parametrize(
    ("logits", "entropy", "gradient"),
    [
        # d H / d z_v = -p_v (log p_v + H)
        pytest.param([3.0, 3.0], log(2), [0.0, 0.0], id="undecided between two: log 2, a maximum"),
        pytest.param([-5.0] * 4, log(4), [0.0] * 4, id="undecided between four: log 4"),
        pytest.param(
            [log(3), 0.0],  # p = 3/4, 1/4
            log(4) - 0.75 * log(3),
            [-3 / 16 * log(3), 3 / 16 * log(3)],
            id="three to one: evening out raises it",
        ),
        pytest.param([0.0, -math.inf], 0.0, [0.0, 0.0], id="one choice: none"),
        pytest.param(
            [0.0, 0.0, -math.inf], log(2), [0.0, 0.0, 0.0], id="a forbidden token has no part"
        ),
        pytest.param([2000.0, 0.0], 0.0, [0.0, 0.0], id="as good as certain: no overflow"),
    ],
)
def test_value_and_gradient(logits: list[float], entropy: float, gradient: list[float]) -> None:
    logits_BTV = torch.tensor([[logits]], requires_grad=True)
    entropy_BT = token_entropy(logprobs_V=logits_BTV.log_softmax(dim=-1))
    entropy_BT.sum().backward()
    assert entropy_BT.shape == (1, 1)
    assert entropy_BT.item() == pytest.approx(entropy, abs=1e-6)
    assert logits_BTV.grad is not None
    assert logits_BTV.grad.flatten().tolist() == pytest.approx(gradient, abs=1e-6)


def test_every_token_has_its_own() -> None:
    logits_BTV = torch.tensor([[[0.0, 0.0], [0.0, -math.inf]], [[0.0, -math.inf], [1.0, 1.0]]])
    entropy_BT = token_entropy(logprobs_V=logits_BTV.log_softmax(dim=-1))
    assert entropy_BT.tolist() == [pytest.approx([log(2), 0.0]), pytest.approx([0.0, log(2)])]


def test_half_precision_is_refused() -> None:
    """bf16 log-probs of 1000 equal tokens would give 6.91 or 6.88 for log 1000."""
    with pytest.raises(ValueError, match=r"expected float32, got torch\.bfloat16"):
        token_entropy(logprobs_V=torch.zeros(1000, dtype=torch.bfloat16))
