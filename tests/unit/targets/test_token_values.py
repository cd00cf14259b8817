"""Targets of Q, token by token: 2.0 comes with the second of three, and -1.0 with the third."""

import pytest
import torch
from torch import Tensor

from forethought.targets.token_values import monte_carlo_targets, td_targets

REWARDS = torch.tensor([0.0, 2.0, -1.0])
ENDED, CUT = torch.tensor([1.0, 0.5, 0.0]), torch.tensor([1.0, 0.5, 0.5])


def test_one_step() -> None:
    """0 + 1 · 4, 2 + 0.5 · 6, -1 and nothing behind it, though what stands there is no number."""
    following = torch.tensor([4.0, 6.0, float("nan")])
    found = td_targets(rewards_N=REWARDS, discounts_N=ENDED, next_values_N=following)
    assert found.tolist() == pytest.approx([4.0, 5.0, -1.0])


def test_one_step_through_a_cut() -> None:
    found = td_targets(rewards_N=REWARDS, discounts_N=CUT, next_values_N=torch.full((3,), 8.0))
    assert found.tolist() == pytest.approx([8.0, 6.0, 3.0])


@pytest.mark.parametrize(
    ("discounts", "last", "expected"),
    [
        # 2 + 0.5 · (-1) = 1.5, and so before it.
        pytest.param(ENDED, None, [1.5, 1.5, -1.0], id="ended"),
        # -1 + 0.5 · 8 = 3, 2 + 0.5 · 3 = 3.5.
        pytest.param(CUT, 8.0, [3.5, 3.5, 3.0], id="cut, and judged by a critic"),
    ],
)
def test_what_followed(discounts: Tensor, last: float | None, expected: list[float]) -> None:
    found = monte_carlo_targets(rewards_N=REWARDS, discounts_N=discounts, last_value=last)
    assert found.tolist() == pytest.approx(expected)


def test_refused() -> None:
    with pytest.raises(ValueError, match="last_value: expected a number behind an episode"):
        monte_carlo_targets(rewards_N=REWARDS, discounts_N=CUT, last_value=None)
    with pytest.raises(ValueError, match="discounts_N: expected 0 to 1"):
        monte_carlo_targets(rewards_N=REWARDS, discounts_N=ENDED + 1, last_value=0.0)
    with pytest.raises(ValueError, match="expected finite rewards and values"):
        td_targets(rewards_N=REWARDS, discounts_N=CUT, next_values_N=REWARDS / 0)
    with pytest.raises(ValueError, match="expected one shape"):
        td_targets(rewards_N=REWARDS, discounts_N=ENDED, next_values_N=torch.ones(2))
