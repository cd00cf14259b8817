"""Thought-scaled log-probs by hand: one row [thought, thought, action, padding]."""

import math
from collections.abc import Callable
from math import exp

import pytest
import torch

from forethought.losses.ppo import clipped_policy_loss, sequence_logprob, thought_scaled_logprobs

THOUGHTS = torch.tensor([[True, True, False, False]])
ACTIONS = torch.tensor([[False, False, True, False]])


@pytest.mark.parametrize(
    ("thought_weight", "scaled", "gradient"),
    [
        pytest.param(
            0.0, [0.0, 0.0, -0.5, 0.0], [0.0, 0.0, 1.0, 0.0], id="lambda=0: the action alone"
        ),
        pytest.param(
            0.5, [-1.0, -2.0, -0.5, 0.0], [0.5, 0.5, 1.0, 0.0], id="lambda=0.5: half as loud"
        ),
        pytest.param(
            1.0, [-2.0, -4.0, -0.5, 0.0], [1.0, 1.0, 1.0, 0.0], id="lambda=1: the plain sum"
        ),
    ],
)
def test_value_and_gradient(
    thought_weight: float, scaled: list[float], gradient: list[float]
) -> None:
    logprobs_BT = torch.tensor([[-2.0, -4.0, -0.5, -9.0]], requires_grad=True)
    scaled_BT = thought_scaled_logprobs(
        logprobs_BT=logprobs_BT,
        thought_mask_BT=THOUGHTS,
        action_mask_BT=ACTIONS,
        thought_weight=thought_weight,
    )
    logprob_B = sequence_logprob(
        logprobs_BT=logprobs_BT,
        thought_mask_BT=THOUGHTS,
        action_mask_BT=ACTIONS,
        thought_weight=thought_weight,
    )
    logprob_B.sum().backward()
    assert scaled_BT.tolist() == [pytest.approx(scaled)]
    assert logprob_B.tolist() == pytest.approx([sum(scaled)])  # one number per row
    assert logprobs_BT.grad is not None
    assert logprobs_BT.grad.tolist() == [pytest.approx(gradient)]


def test_every_row_has_its_own_sum() -> None:
    """λ = 0.5: -1 - 2 - 0.5, and -0.5 - 0.5 - 3."""
    logprob_B = sequence_logprob(
        logprobs_BT=torch.tensor([[-2.0, -4.0, -0.5, -9.0], [-1.0, -1.0, -3.0, -9.0]]),
        thought_mask_BT=THOUGHTS.expand(2, 4),
        action_mask_BT=ACTIONS.expand(2, 4),
        thought_weight=0.5,
    )
    assert logprob_B.tolist() == pytest.approx([-3.5, -4.0])


@pytest.mark.parametrize(
    ("thought_weight", "junk"),
    [
        pytest.param(0.5, [-1.0, -1.0, -1.0, -math.inf], id="padding"),
        pytest.param(0.5, [-1.0, -1.0, -1.0, math.nan], id="padding that is not a number"),
        pytest.param(
            0.0, [-math.inf, -1.0, -1.0, -1.0], id="a thought of probability 0, at lambda=0"
        ),
    ],
)
def test_what_has_no_weight_may_hold_anything(thought_weight: float, junk: list[float]) -> None:
    logprobs_BT = torch.tensor([junk], requires_grad=True)
    logprob_B = sequence_logprob(
        logprobs_BT=logprobs_BT,
        thought_mask_BT=THOUGHTS,
        action_mask_BT=ACTIONS,
        thought_weight=thought_weight,
    )
    logprob_B.sum().backward()
    assert logprob_B.item() == pytest.approx(-2 * thought_weight - 1.0)
    assert logprobs_BT.grad is not None
    assert torch.isfinite(logprobs_BT.grad).all()


@pytest.mark.parametrize(
    ("thought_weight", "ratio"),
    [
        pytest.param(0.0, 1.0, id="lambda=0: a changed thought does not move the ratio"),
        pytest.param(0.5, exp(0.1), id="lambda=0.5: half of its log-ratio"),
        pytest.param(1.0, exp(0.2), id="lambda=1: all of it"),
    ],
)
def test_same_weight_on_both_sides_of_the_ratio(thought_weight: float, ratio: float) -> None:
    """One thought token became likelier by 0.2 nats; A = -1, so that nothing is clipped from above.

    Loss r; d loss / d log p_thought = λ r, d loss / d log p_action = r.
    """

    def step_logprob(logprobs_BT: torch.Tensor) -> torch.Tensor:
        return sequence_logprob(
            logprobs_BT=logprobs_BT,
            thought_mask_BT=THOUGHTS,
            action_mask_BT=ACTIONS,
            thought_weight=thought_weight,
        )

    logprobs_BT = torch.tensor([[-1.8, -4.0, -0.5, 0.0]], requires_grad=True)
    result = clipped_policy_loss(
        logprobs=step_logprob(logprobs_BT),
        old_logprobs=step_logprob(torch.tensor([[-2.0, -4.0, -0.5, 0.0]])),
        advantages=torch.tensor([-1.0]),
        mask=None,
        clip=0.1,
    )
    result.loss.backward()
    assert result.loss.item() == pytest.approx(ratio)
    assert result.maximum_deviation.item() == pytest.approx(ratio - 1, abs=1e-6)
    assert logprobs_BT.grad is not None
    thought = thought_weight * ratio
    assert logprobs_BT.grad.tolist() == [pytest.approx([thought, thought, ratio, 0.0])]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        pytest.param({"thought_weight": -0.1}, "expected 0 to 1, got -0.1", id="lambda below 0"),
        pytest.param({"thought_weight": 1.1}, "expected 0 to 1, got 1.1", id="lambda above 1"),
        pytest.param({"thought_weight": math.nan}, "expected 0 to 1, got nan", id="lambda is NaN"),
        pytest.param({"action_mask_BT": THOUGHTS}, "got 2 that are both", id="thought and action"),
        pytest.param(
            {"action_mask_BT": torch.tensor([[False, True, True, False]])},
            "got 1 that are both",
            id="one token of overlap",
        ),
        pytest.param({"action_mask_BT": ACTIONS.float()}, "expected bool", id="mask of floats"),
        pytest.param({"thought_mask_BT": THOUGHTS.long()}, "expected bool", id="mask of integers"),
        pytest.param(
            {"thought_mask_BT": THOUGHTS[:, :3]},
            r"thought_mask_BT \[1, 3\]",
            id="mask of another length",
        ),
        pytest.param({"logprobs_BT": torch.zeros(4)}, r"expected \[B, T\]", id="no row"),
        pytest.param(
            {"logprobs_BT": torch.zeros(1, 4).double()}, "got torch.float64", id="fp64 log-probs"
        ),
    ],
)
@pytest.mark.parametrize("function", [thought_scaled_logprobs, sequence_logprob])
def test_refused(
    function: Callable[..., torch.Tensor], override: dict[str, object], message: str
) -> None:
    good = {
        "logprobs_BT": torch.zeros(1, 4),
        "thought_mask_BT": THOUGHTS,
        "action_mask_BT": ACTIONS,
        "thought_weight": 0.5,
    }
    with pytest.raises(ValueError, match=message):
        function(**good | override)
