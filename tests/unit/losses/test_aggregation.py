"""Three numbers from the tokens of two answers, value and gradient by hand."""

import math

import pytest
import torch

from forethought.losses.elements import Aggregation, aggregate


@pytest.mark.parametrize(
    ("aggregation", "value", "gradient"),
    [
        pytest.param(
            "token_mean",
            (1 + 2 + 3 + 10) / 4,
            [[1 / 4, 1 / 4, 1 / 4], [1 / 4, 0.0, 0.0]],
            id="token_mean: tokens weigh alike",
        ),
        pytest.param(
            "sequence_mean",
            ((1 + 2 + 3) / 3 + 10) / 2,
            [[1 / 6, 1 / 6, 1 / 6], [1 / 2, 0.0, 0.0]],
            id="sequence_mean: answers weigh alike",
        ),
        pytest.param(
            "sequence_sum",
            ((1 + 2 + 3) + 10) / 2,
            [[1 / 2, 1 / 2, 1 / 2], [1 / 2, 0.0, 0.0]],
            id="sequence_sum: tokens weigh alike, answers are counted",
        ),
    ],
)
@pytest.mark.parametrize("padding", [pytest.param(7.0, id=""), math.inf, math.nan])
def test_value_and_gradient(
    aggregation: Aggregation, value: float, gradient: list[list[float]], padding: float
) -> None:
    """An answer of three tokens and one of a single token, padded with whatever it may be."""
    values_BT = torch.tensor([[1.0, 2.0, 3.0], [10.0, padding, padding]], requires_grad=True)
    mask_BT = torch.tensor([[True, True, True], [True, False, False]])
    result = aggregate(values_BT=values_BT, mask_BT=mask_BT, aggregation=aggregation)
    result.backward()
    assert result.item() == pytest.approx(value)
    assert values_BT.grad is not None
    assert values_BT.grad.tolist() == [pytest.approx(row) for row in gradient]


@pytest.mark.parametrize(
    ("aggregation", "value"), [("token_mean", 3.0), ("sequence_mean", 3.0), ("sequence_sum", 6.0)]
)
def test_without_a_mask_every_token_counts(aggregation: Aggregation, value: float) -> None:
    """Of equal length the first two are one: (1 + 3 + 2 + 6) / 4. The sums are 4 and 8."""
    values_BT = torch.tensor([[1.0, 3.0], [2.0, 6.0]])
    result = aggregate(values_BT=values_BT, mask_BT=None, aggregation=aggregation)
    assert result.item() == pytest.approx(value)


@pytest.mark.parametrize(
    ("aggregation", "value", "gradient"),
    [
        pytest.param("token_mean", 3.0, [0.5, 0.5], id="token_mean"),
        pytest.param("sequence_mean", 1.5, [0.25, 0.25], id="sequence_mean"),
        pytest.param("sequence_sum", 3.0, [0.5, 0.5], id="sequence_sum"),
    ],
)
def test_answer_without_a_token_that_counts_adds_nothing(
    aggregation: Aggregation, value: float, gradient: list[float]
) -> None:
    """2 and 4 beside an empty answer, which is one of the two answers, but not a token."""
    values_BT = torch.tensor([[2.0, 4.0], [9.0, 9.0]], requires_grad=True)
    mask_BT = torch.tensor([[True, True], [False, False]])
    result = aggregate(values_BT=values_BT, mask_BT=mask_BT, aggregation=aggregation)
    result.backward()
    assert result.item() == pytest.approx(value)
    assert values_BT.grad is not None
    assert values_BT.grad.tolist() == [pytest.approx(gradient), [0.0, 0.0]]


@pytest.mark.parametrize("aggregation", ["token_mean", "sequence_mean", "sequence_sum"])
@pytest.mark.parametrize(
    ("values", "mask", "message"),
    [
        pytest.param(torch.zeros(2), None, r"expected \[B, T\], got shape \[2\]", id="no tokens"),
        pytest.param(torch.zeros(2, 3), torch.ones(2, 1).bool(), r"bool \[2, 3\]", id="broadcast"),
        pytest.param(torch.zeros(2, 3), torch.zeros(2, 3).bool(), "got none", id="nothing counts"),
    ],
)
def test_refused(
    values: torch.Tensor, mask: torch.Tensor | None, message: str, aggregation: Aggregation
) -> None:
    with pytest.raises(ValueError, match=message):
        aggregate(values_BT=values, mask_BT=mask, aggregation=aggregation)
