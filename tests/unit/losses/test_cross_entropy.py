"""Token-mean cross-entropy by hand: which tokens count, and how much each."""

import math

import pytest
import torch

from forethought.losses.cross_entropy import token_mean_cross_entropy

PAD = -math.inf  # what is masked may hold anything


@pytest.mark.parametrize(
    ("logprobs", "mask", "loss", "gradient"),
    [
        pytest.param([[-1.0, -3.0]], [[1, 1]], 2.0, [[-1 / 2, -1 / 2]], id="every token counts"),
        pytest.param([[-1.0, -3.0]], [[0, 1]], 3.0, [[0.0, -1.0]], id="the prompt does not"),
        pytest.param(
            # Token mean (1 + 1 + 1 + 5) / 4 = 2; the mean of row means would be 3.
            [[-1.0, -1.0, -1.0], [-5.0, PAD, PAD]],
            [[1, 1, 1], [1, 0, 0]],
            2.0,
            [[-1 / 4, -1 / 4, -1 / 4], [-1 / 4, 0.0, 0.0]],
            id="tokens weigh the same in long and short rows",
        ),
        pytest.param([[0.0, 0.0]], [[1, 1]], 0.0, [[-1 / 2, -1 / 2]], id="certain: no loss"),
        pytest.param([[math.nan, -2.0]], [[0, 1]], 2.0, [[0.0, -1.0]], id="masked NaN is left out"),
    ],
)
def test_value_and_gradient(
    logprobs: list[list[float]], mask: list[list[int]], loss: float, gradient: list[list[float]]
) -> None:
    logprobs_BT = torch.tensor(logprobs, requires_grad=True)
    result = token_mean_cross_entropy(
        logprobs_BT=logprobs_BT, mask_BT=torch.tensor(mask, dtype=torch.bool)
    )
    result.loss.backward()
    assert result.loss.item() == pytest.approx(loss)
    assert logprobs_BT.grad is not None
    assert logprobs_BT.grad.tolist() == [pytest.approx(row) for row in gradient]
    assert result.token_count.item() == sum(map(sum, mask))
    assert not result.token_count.requires_grad


@pytest.mark.parametrize(
    ("logprobs_BT", "mask_BT", "message"),
    [
        pytest.param(
            torch.zeros(2), torch.ones(2).bool(), r"expected \[B, T\], got shape \[2\]", id="no row"
        ),
        pytest.param(
            torch.zeros(2, 3),
            torch.ones(2, 1).bool(),
            r"expected bool \[2, 3\], got torch.bool \[2, 1\]",
            id="mask that would broadcast",
        ),
        pytest.param(
            torch.zeros(2, 3),
            torch.ones(2, 3),
            "expected bool.* got torch.float32",
            id="mask of 1.0",
        ),
        pytest.param(
            torch.zeros(2, 3).bfloat16(),
            torch.ones(2, 3).bool(),
            "logprobs_BT: expected float32, got torch.bfloat16",
            id="bf16 log-probs",
        ),
        pytest.param(
            torch.zeros(2, 3), torch.zeros(2, 3).bool(), "at least one element", id="nothing counts"
        ),
    ],
)
def test_refused(logprobs_BT: torch.Tensor, mask_BT: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        token_mean_cross_entropy(logprobs_BT=logprobs_BT, mask_BT=mask_BT)
