"""Q-SFT's loss by hand: one state, four actions with probabilities 0.4, 0.3, 0.2, 0.1.

The loss is a cross-entropy with weights w that add up to 1, so its slope in a logit is p - w.
"""

from math import log

import pytest
import torch
from torch import Tensor

from forethought.losses.q_sft import likelihood_loss

PROBABILITIES = [0.4, 0.3, 0.2, 0.1]
ALL = [True, True, True, True]
PLACEHOLDER = -1e9


def loss_of(logits_NV: Tensor, target: float, choices: list[bool], residual: int | None) -> Tensor:
    logprobs_NV = torch.log_softmax(logits_NV, -1)
    count = len(logits_NV)
    result = likelihood_loss(
        logprobs_NV=logprobs_NV,
        actions_N=torch.zeros(count, dtype=torch.int64),
        targets_N=torch.full((count,), target),
        choices_NV=torch.tensor([choices] * count),
        residual=residual,
    )
    assert result.residual_mass.item() == pytest.approx(1 - target)
    return result.loss


@pytest.mark.parametrize(
    ("target", "choices", "residual", "weights"),
    [
        pytest.param(0.7, ALL, None, [0.7, 0.1, 0.1, 0.1], id="spread over the vocabulary"),
        pytest.param(0.7, [True, True, False, False], None, [0.7, 0.3, 0, 0], id="spread, legal"),
        pytest.param(0.7, ALL, 3, [0.7, 0, 0, 0.3], id="residual"),
        pytest.param(1.0, ALL, None, [1, 0, 0, 0], id="worth 1: cross-entropy"),
        pytest.param(1.0, ALL, 3, [1, 0, 0, 0], id="worth 1, residual: cross-entropy"),
        pytest.param(0.0, ALL, None, [0, 1 / 3, 1 / 3, 1 / 3], id="worth 0: away from it"),
        pytest.param(0.0, ALL, 3, [0, 0, 0, 1], id="worth 0: to the residual token"),
    ],
)
def test_region(
    target: float, choices: list[bool], residual: int | None, weights: list[float]
) -> None:
    logits_NV = torch.tensor([PROBABILITIES]).log().requires_grad_()
    loss = loss_of(logits_NV, target, choices, residual)
    loss.backward()
    by_hand = -sum(w * log(p) for w, p in zip(weights, PROBABILITIES, strict=True))
    assert loss.item() == pytest.approx(by_hand, rel=1e-5)
    assert logits_NV.grad is not None
    slopes = [p - w for w, p in zip(weights, PROBABILITIES, strict=True)]
    assert logits_NV.grad[0].tolist() == pytest.approx(slopes, abs=1e-6)


def test_no_other_choice_leaves_the_rest_nowhere() -> None:
    logits_NV = torch.tensor([PROBABILITIES]).log().requires_grad_()
    loss = loss_of(logits_NV, 0.7, [True, False, False, False], None)
    loss.backward()
    assert loss.item() == pytest.approx(-0.7 * log(0.4))
    assert logits_NV.grad is not None
    assert logits_NV.grad[0].tolist() == pytest.approx([-0.42, 0.21, 0.14, 0.07])


def test_what_cannot_be_said_is_no_choice() -> None:
    logits_NV = torch.tensor([[*PROBABILITIES, 1.0]]).log()
    logits_NV[0, 4] = PLACEHOLDER
    with_it = loss_of(logits_NV, 0.7, [*ALL, False], None)
    assert with_it.item() == pytest.approx(
        loss_of(torch.tensor([PROBABILITIES]).log(), 0.7, ALL, None).item()
    )


def test_the_mean_over_actions() -> None:
    logits_NV = torch.tensor([PROBABILITIES, PROBABILITIES[::-1]]).log()
    both = loss_of(logits_NV, 0.7, ALL, None)
    each = [loss_of(logits_NV[i : i + 1], 0.7, ALL, None).item() for i in range(2)]
    assert both.item() == pytest.approx(sum(each) / 2)


@pytest.mark.parametrize("residual", [None, 3])
def test_least_where_probability_is_value_times_behavior(residual: int | None) -> None:
    """Behavior takes actions 0 and 1 as 3 to 1, worth 0.8 and 0.4: 0.6 and 0.1 remain on them,
    and 0.2 · 0.75 + 0.6 · 0.25 = 0.3 is left over; each other action gets its share."""
    logits_V = torch.zeros(4, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits_V], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = likelihood_loss(
            logprobs_NV=torch.log_softmax(logits_V, -1).expand(4, 4),
            actions_N=torch.tensor([0, 0, 0, 1]),
            targets_N=torch.tensor([0.8, 0.8, 0.8, 0.4]),
            choices_NV=torch.ones(4, 4, dtype=torch.bool),
            residual=residual,
        ).loss
        loss.backward()
        return loss

    optimizer.step(closure)
    spread = [0.6 + 0.15 / 3, 0.1 + 0.15 / 3, 0.1, 0.1]
    expected = spread if residual is None else [0.6, 0.1, 0.0, 0.3]
    assert torch.softmax(logits_V, -1).tolist() == pytest.approx(expected, abs=2e-3)


ONE = torch.tensor([PROBABILITIES]).log()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"targets_N": torch.tensor([1.2])}, "expected 0 to 1", id="target above 1"),
        pytest.param({"targets_N": torch.tensor([-0.1])}, "expected 0 to 1", id="target below 0"),
        pytest.param({"targets_N": torch.zeros(2)}, "one shape", id="a target too many"),
        pytest.param({"logprobs_NV": ONE.double()}, "expected float32", id="float64"),
        pytest.param(
            {"choices_NV": torch.tensor([[False, True, True, True]])}, "none of", id="not a choice"
        ),
        pytest.param({"residual": 0}, "0 is the residual token", id="the residual itself"),
        pytest.param(
            {"actions_N": torch.zeros(2, dtype=torch.int64), "targets_N": torch.zeros(2)},
            "one action per state",
            id="actions without states",
        ),
        pytest.param(
            {"targets_N": torch.tensor([0.5], requires_grad=True)},
            "without gradient",
            id="a target that learns",
        ),
    ],
)
def test_refused(changes: dict[str, object], message: str) -> None:
    arguments = {
        "logprobs_NV": ONE,
        "actions_N": torch.zeros(1, dtype=torch.int64),
        "targets_N": torch.tensor([0.5]),
        "choices_NV": torch.ones(1, 4, dtype=torch.bool),
        "residual": None,
    }
    with pytest.raises(ValueError, match=message):
        likelihood_loss(**{**arguments, **changes})  # type: ignore[arg-type]
