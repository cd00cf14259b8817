"""REFUEL and XPO: value and slope by hand, on the pair of `test_objectives.py`."""

from functools import partial
from math import log

import pytest
import torch

from forethought.losses.online_preference import refuel_loss, xpo_loss
from tests.unit.losses.preference.builders import Given, Slopes, answers, slopes
from tests.unit.losses.preference.test_objectives import CHOSEN, REJECTED, Objective

REFUEL = [
    pytest.param(
        # Half a nat's worth: (log(8)/2 - 2)², slope 2 · 1/2 · (log(8)/2 - 2).
        partial(refuel_loss, beta=0.5, return_gaps_P=torch.tensor([2.0])),
        (
            (log(8) / 2 - 2) ** 2,
            log(8) / 2,
            Slopes(*((log(8) / 2 - 2) * sign for sign in (1, 1, -1, -1))),
        ),
        id="refuel: nearer than the returns, drawn apart",
    ),
    pytest.param(
        partial(refuel_loss, beta=1.0, return_gaps_P=torch.tensor([1.0])),
        (
            (log(8) - 1) ** 2,
            log(8),
            Slopes(*(2 * (log(8) - 1) * sign for sign in (1, 1, -1, -1))),
        ),
        id="refuel: further apart than the returns, drawn back",
    ),
    pytest.param(
        partial(refuel_loss, beta=1.0, return_gaps_P=torch.tensor([log(8)])),
        (0.0, log(8), Slopes(0, 0, 0, 0)),
        id="refuel: as far apart as the returns, nothing",
    ),
]

XPO = [
    pytest.param(
        # w(y⁺) = 1/4, the reference's share; w(y⁻) = 2, held at 1. log π = log 1/4, log 1/16.
        partial(xpo_loss, beta=1.0, alpha=0.5),
        (
            log(9 / 8) - 0.5 * (log(4) / 4 + log(16)) / 2,
            log(8),
            Slopes(-1 / 9 + 1 / 16, -1 / 9 + 1 / 16, 1 / 9 + 1 / 4, 1 / 9 + 1 / 4),
        ),
        id="xpo: both made less likely, what the reference says the more",
    ),
    pytest.param(
        partial(xpo_loss, beta=1.0, alpha=0.0),
        (log(9 / 8), log(8), Slopes(-1 / 9, -1 / 9, 1 / 9, 1 / 9)),
        id="xpo: without its bonus, dpo",
    ),
]


@pytest.mark.parametrize(("objective", "expected"), [*REFUEL, *XPO])
def test_value_and_slope(objective: Objective, expected: tuple[float, float, Slopes]) -> None:
    chosen, rejected = answers(CHOSEN), answers(REJECTED)
    result = objective(chosen=chosen, rejected=rejected)
    loss, margin, slope = expected
    assert result.loss.item() == pytest.approx(loss, abs=1e-6)
    assert result.margins_P.tolist() == [pytest.approx(margin, abs=1e-6)]
    assert not result.margins_P.requires_grad
    assert slopes(result.loss, chosen, rejected) == pytest.approx(slope, abs=1e-6)


def test_xpo_is_a_mean_over_pairs() -> None:
    """Two pairs cost the mean of what each costs alone, so micro-batches add up."""
    other, another = Given(0.4, 0.9, 0.3, 0.8, 4, 1), Given(0.6, 0.7, 0.1, 0.9, 2, 3)
    loss = partial(xpo_loss, beta=1.0, alpha=0.5)
    both = loss(chosen=answers(CHOSEN, other), rejected=answers(REJECTED, another))
    first = loss(chosen=answers(CHOSEN), rejected=answers(REJECTED))
    second = loss(chosen=answers(other), rejected=answers(another))
    assert both.loss.item() == pytest.approx((first.loss.item() + second.loss.item()) / 2)


def test_mean_over_pairs_with_returns() -> None:
    """(log 8 - 1)² of the one pair, (log 8 - 3)² of the other."""
    result = refuel_loss(
        chosen=answers(CHOSEN, CHOSEN),
        rejected=answers(REJECTED, REJECTED),
        return_gaps_P=torch.tensor([1.0, 3.0]),
        beta=1.0,
    )
    assert result.loss.item() == pytest.approx(((log(8) - 1) ** 2 + (log(8) - 3) ** 2) / 2)


def test_the_order_of_a_pair_is_nothing_to_refuel() -> None:
    """Sides exchanged, returns with them: the same loss, where dpo's is another."""
    one, other = answers(CHOSEN), answers(REJECTED)
    gap = torch.tensor([1.5])
    there = refuel_loss(chosen=one, rejected=other, return_gaps_P=gap, beta=0.7)
    back = refuel_loss(chosen=other, rejected=one, return_gaps_P=-gap, beta=0.7)
    assert there.loss.item() == pytest.approx(back.loss.item())


def test_refused() -> None:
    chosen, rejected = answers(CHOSEN), answers(REJECTED)
    with pytest.raises(ValueError, match="beta: expected more than 0, got 0"):
        refuel_loss(chosen=chosen, rejected=rejected, return_gaps_P=torch.zeros(1), beta=0.0)
    with pytest.raises(ValueError, match="alpha: expected 0 or more, got -1"):
        xpo_loss(chosen=chosen, rejected=rejected, beta=1.0, alpha=-1.0)
    for gaps, message in (
        (torch.zeros(2), "expected one shape"),
        (torch.zeros(1, dtype=torch.float64), "return_gaps_P: expected float32"),
        (torch.zeros(1, requires_grad=True), "return_gaps_P: expected data without gradient"),
    ):
        with pytest.raises(ValueError, match=message):
            refuel_loss(chosen=chosen, rejected=rejected, return_gaps_P=gaps, beta=1.0)
