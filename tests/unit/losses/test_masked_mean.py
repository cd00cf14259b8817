"""The mean over what counts, by hand."""

import math

import pytest
import torch

from forethought.losses.elements import masked_mean


@pytest.mark.parametrize(
    ("values", "mask", "mean", "gradient"),
    [
        pytest.param([1.0, 2.0, 6.0], None, 3.0, [1 / 3, 1 / 3, 1 / 3], id="no mask: all count"),
        pytest.param([1.0, 2.0, 6.0], [1, 0, 1], 3.5, [1 / 2, 0.0, 1 / 2], id="one left out"),
        pytest.param([1.0, math.inf], [1, 0], 1.0, [1.0, 0.0], id="masked infinity is left out"),
        pytest.param([math.nan, 4.0], [0, 1], 4.0, [0.0, 1.0], id="masked NaN is left out"),
    ],
)
def test_value_and_gradient(
    values: list[float], mask: list[int] | None, mean: float, gradient: list[float]
) -> None:
    tensor = torch.tensor(values, requires_grad=True)
    kept = None if mask is None else torch.tensor(mask, dtype=torch.bool)
    result = masked_mean(values=tensor, mask=kept)
    result.backward()
    assert result.item() == pytest.approx(mean)
    assert tensor.grad is not None
    assert tensor.grad.tolist() == pytest.approx(gradient)


def test_rows_do_not_matter() -> None:
    """(1 + 2 + 6) / 3, not the mean of the row means 1.5 and 6."""
    values = torch.tensor([[1.0, 2.0], [6.0, 0.0]])
    mask = torch.tensor([[True, True], [True, False]])
    assert masked_mean(values=values, mask=mask).item() == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        pytest.param(torch.ones(1, 3).bool(), r"expected bool \[2, 3\], got", id="would broadcast"),
        pytest.param(torch.ones(2, 3).long(), "got torch.int64", id="mask of integers"),
        pytest.param(torch.zeros(2, 3).bool(), "got none", id="nothing counts"),
    ],
)
def test_refused(mask: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        masked_mean(values=torch.zeros(2, 3), mask=mask)
