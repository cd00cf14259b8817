"""Each region of the clipped loss, value and gradient by hand (old log-prob 0 unless said)."""

import math
from math import exp, log

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forethought.losses.elements import Aggregation
from forethought.losses.ppo import clipped_policy_loss


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient"),
    [
        pytest.param(1.0, +2.0, -2.0, -2.0, id="first update, good: the policy gradient"),
        pytest.param(1.0, -2.0, +2.0, +2.0, id="first update, bad: the policy gradient"),
        pytest.param(1.1, +2.0, -2.2, -2.2, id="inside, good: follow r A"),
        pytest.param(0.9, -2.0, +1.8, +1.8, id="inside, bad: follow r A"),
        pytest.param(1.5, +2.0, -2.4, 0.0, id="above, good: 1.2 A, flat"),
        pytest.param(1.5, -2.0, +3.0, +3.0, id="above, bad: r A, pulled back"),
        pytest.param(0.5, +2.0, -1.0, -1.0, id="below, good: r A, pushed up"),
        pytest.param(0.5, -2.0, +1.6, 0.0, id="below, bad: 0.8 A, flat"),
        pytest.param(1.5, 0.0, 0.0, 0.0, id="neither good nor bad: nothing"),
    ],
)
@pytest.mark.parametrize("shape", [pytest.param((1,), id="step"), pytest.param((1, 1), id="token")])
def test_region(
    ratio: float, advantage: float, loss: float, gradient: float, shape: tuple[int, ...]
) -> None:
    logprobs = torch.full(shape, log(ratio), requires_grad=True)
    result = clipped_policy_loss(
        logprobs=logprobs,
        old_logprobs=torch.zeros(shape),
        advantages=torch.full(shape, advantage),
        mask=None,
        clip=0.2,
    )
    result.loss.backward()
    assert result.loss.item() == pytest.approx(loss)
    assert logprobs.grad is not None
    # d loss / d log p = -r A where not flat, since d r / d log p = r
    assert logprobs.grad.item() == pytest.approx(gradient)


def test_ratio_is_against_the_old_policy() -> None:
    """log p = -1, log p_old = -1.1: r = e^0.1, inside a clip of 0.2; A = 3."""
    logprobs = torch.tensor([-1.0], requires_grad=True)
    result = clipped_policy_loss(
        logprobs=logprobs,
        old_logprobs=torch.tensor([-1.1]),
        advantages=torch.tensor([3.0]),
        mask=None,
        clip=0.2,
    )
    result.loss.backward()
    assert result.loss.item() == pytest.approx(-3 * exp(0.1))
    assert logprobs.grad is not None
    assert logprobs.grad.item() == pytest.approx(-3 * exp(0.1))


def test_mean_is_over_the_tokens_that_count() -> None:
    """Three of five tokens count. Ratios 1, all inside: loss -(2 + 2 - 4) / 3 = 0.

    The mean of row means would be -(2 - 4) / 2 = +1. Gradient -A / 3 where counted.
    """
    logprobs = torch.zeros(2, 3, requires_grad=True)
    result = clipped_policy_loss(
        logprobs=logprobs,
        old_logprobs=torch.zeros(2, 3),
        advantages=torch.tensor([[2.0, 2.0, 2.0], [-4.0, -4.0, -4.0]]),
        mask=torch.tensor([[True, True, False], [True, False, False]]),
        clip=0.2,
    )
    result.loss.backward()
    assert result.loss.item() == pytest.approx(0.0)
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [
        pytest.approx([-2 / 3, -2 / 3, 0.0]),
        pytest.approx([4 / 3, 0.0, 0.0]),
    ]


@pytest.mark.parametrize(
    ("aggregation", "loss", "gradient"),
    [
        pytest.param(
            "token_mean", -0.1 / 3, [[-2 / 3, -2.1 / 3], [4 / 3, 0.0]], id="tokens weigh alike"
        ),
        pytest.param(
            "sequence_mean", 3.9 / 4, [[-2 / 4, -2.1 / 4], [4 / 2, 0.0]], id="answers weigh alike"
        ),
        pytest.param(
            "sequence_sum", -0.1 / 2, [[-2 / 2, -2.1 / 2], [4 / 2, 0.0]], id="sums of answers"
        ),
    ],
)
def test_aggregation(aggregation: Aggregation, loss: float, gradient: list[list[float]]) -> None:
    """Two tokens, r = 1 and 1.05, A = 2; then one, r = 1, A = -4: r A is 2, 2.1 and -4.

    token_mean -(2 + 2.1 - 4) / 3; sequence_mean -((2 + 2.1) / 2 - 4) / 2; sequence_sum
    -((2 + 2.1) - 4) / 2. The statistics are over the three tokens, whatever is asked for.
    """
    logprobs = torch.tensor([[0.0, log(1.05)], [0.0, 0.0]], requires_grad=True)
    result = clipped_policy_loss(
        logprobs=logprobs,
        old_logprobs=torch.zeros(2, 2),
        advantages=torch.tensor([[2.0, 2.0], [-4.0, -4.0]]),
        mask=torch.tensor([[True, True], [True, False]]),
        clip=0.2,
        aggregation=aggregation,
    )
    result.loss.backward()
    assert result.loss.item() == pytest.approx(loss, abs=1e-6)
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [pytest.approx(row) for row in gradient]
    assert result.approximate_kl.item() == pytest.approx((0.05 - log(1.05)) / 3, rel=1e-3)


@pytest.mark.parametrize(
    ("logprob", "old_logprob", "advantage"),
    [
        pytest.param(5.0, 0.0, 7.0, id="a huge ratio"),
        pytest.param(-math.inf, -math.inf, 1.0, id="probability 0 on both sides"),
        pytest.param(1000.0, 0.0, 1.0, id="a ratio that overflows"),
        pytest.param(math.nan, 0.0, math.nan, id="not a number"),
    ],
)
def test_masked_element_has_no_part(logprob: float, old_logprob: float, advantage: float) -> None:
    """Beside one element with r = 1.1, A = 2, clip 0.2: every number is that element's own."""
    logprobs = torch.tensor([log(1.1), logprob], requires_grad=True)
    result = clipped_policy_loss(
        logprobs=logprobs,
        old_logprobs=torch.tensor([0.0, old_logprob]),
        advantages=torch.tensor([2.0, advantage]),
        mask=torch.tensor([True, False]),
        clip=0.2,
    )
    result.loss.backward()
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == pytest.approx([-2.2, 0.0])
    assert result.loss.item() == pytest.approx(-2.2)
    assert result.clip_fraction.item() == 0.0
    assert result.approximate_kl.item() == pytest.approx(0.1 - log(1.1), rel=1e-5)
    assert result.maximum_deviation.item() == pytest.approx(0.1)


def test_statistics() -> None:
    """Ratios 1, 1.1, 0.5, 1.5 at clip 0.2: two of four left the range; largest |r - 1| is 0.5.

    k3 per element: 0, 0.1 - log 1.1, -0.5 - log 0.5, 0.5 - log 1.5.
    """
    ratios = [1.0, 1.1, 0.5, 1.5]
    result = clipped_policy_loss(
        logprobs=torch.tensor([log(ratio) for ratio in ratios], requires_grad=True),
        old_logprobs=torch.zeros(4),
        advantages=torch.ones(4),
        mask=None,
        clip=0.2,
    )
    k3 = [ratio - 1 - log(ratio) for ratio in ratios]
    assert result.clip_fraction.item() == 0.5
    assert result.approximate_kl.item() == pytest.approx(sum(k3) / 4)
    assert result.maximum_deviation.item() == pytest.approx(0.5)
    assert not any(statistic.requires_grad for statistic in result[1:])


def test_largest_deviation_may_be_downwards() -> None:
    result = clipped_policy_loss(
        logprobs=torch.tensor([log(0.4), log(1.1)]),
        old_logprobs=torch.zeros(2),
        advantages=torch.ones(2),
        mask=None,
        clip=0.2,
    )
    assert result.maximum_deviation.item() == pytest.approx(0.6)


@settings(deadline=None)  # a busy machine is not a failure
@given(
    log_ratio=st.floats(-3, 3, width=32),
    advantage=st.floats(-10, 10, width=32),
    clip=st.floats(0.01, 0.9),
)
def test_never_promises_more_than_the_unclipped_objective(
    log_ratio: float, advantage: float, clip: float
) -> None:
    result = clipped_policy_loss(
        logprobs=torch.tensor([log_ratio]),
        old_logprobs=torch.zeros(1),
        advantages=torch.tensor([advantage]),
        mask=None,
        clip=clip,
    )
    assert result.loss.item() >= -exp(log_ratio) * advantage - 1e-3
    assert result.approximate_kl.item() >= 0


@pytest.mark.parametrize(
    ("override", "message"),
    [
        pytest.param({"old_logprobs": torch.zeros(2)}, r"old_logprobs \[2\]", id="old length"),
        pytest.param(
            {"advantages": torch.zeros(3, 1)},
            r"advantages \[3, 1\]",
            id="advantage would broadcast",
        ),
        pytest.param({"mask": torch.ones(1).bool()}, r"expected bool \[3\]", id="mask broadcasts"),
        pytest.param({"mask": torch.ones(3)}, "got torch.float32", id="mask of floats"),
        pytest.param({"mask": torch.zeros(3).bool()}, "got none", id="nothing counts"),
        pytest.param(
            {"logprobs": torch.zeros(3).bfloat16()},
            "logprobs: expected float32, got torch.bfloat16",
            id="bf16 log-probs",
        ),
        pytest.param(
            {"old_logprobs": torch.zeros(3).double()},
            "old_logprobs: expected float32, got torch.float64",
            id="fp64 old log-probs",
        ),
        pytest.param({"advantages": torch.zeros(3).long()}, "got torch.int64", id="integers"),
        pytest.param(
            {"old_logprobs": torch.zeros(3, requires_grad=True)},
            "old_logprobs: expected data without gradient",
            id="gradient on the old side",
        ),
        pytest.param(
            {"advantages": torch.zeros(3, requires_grad=True)},
            "advantages: expected data without gradient",
            id="gradient through the advantage",
        ),
        pytest.param({"clip": 0.0}, "clip: expected more than 0, got 0.0", id="no clip range"),
        pytest.param({"clip": math.nan}, "got nan", id="clip is NaN"),
        pytest.param(
            {"aggregation": "sequence_mean"},
            r"aggregation of steps \[B\]: expected token_mean, got sequence_mean",
            id="aggregation of steps",
        ),
    ],
)
def test_refused(override: dict[str, object], message: str) -> None:
    good = {
        "logprobs": torch.zeros(3, requires_grad=True),
        "old_logprobs": torch.zeros(3),
        "advantages": torch.ones(3),
        "mask": None,
        "clip": 0.2,
    }
    with pytest.raises(ValueError, match=message):
        clipped_policy_loss(**good | override)  # type: ignore[arg-type]


def test_neither_steps_nor_tokens_is_refused() -> None:
    cube = torch.zeros(1, 2, 3)
    with pytest.raises(ValueError, match=r"steps \[B\] or tokens \[B, T\], got shape \[1, 2, 3\]"):
        clipped_policy_loss(logprobs=cube, old_logprobs=cube, advantages=cube, mask=None, clip=0.2)


def test_thoughts_at_weight_zero_dilute_the_mean_unless_masked() -> None:
    """Token mode, λ = 0, one thought (scaled log-prob 0) and one action token with r = 1.1, A = 2.

    Counted, the thought adds the constant -2 and halves the action's gradient.
    """
    old = torch.zeros(1, 2)
    advantages = torch.full((1, 2), 2.0)
    gradients: list[list[list[float]]] = []
    losses: list[float] = []
    for mask in (None, torch.tensor([[False, True]])):
        logprobs = torch.tensor([[0.0, log(1.1)]], requires_grad=True)
        scaled = logprobs * torch.tensor([[0.0, 1.0]])
        result = clipped_policy_loss(
            logprobs=scaled, old_logprobs=old, advantages=advantages, mask=mask, clip=0.2
        )
        result.loss.backward()
        assert logprobs.grad is not None
        losses.append(result.loss.item())
        gradients.append(logprobs.grad.tolist())
    assert losses == pytest.approx([-(2.0 + 2.2) / 2, -2.2])
    assert gradients == [[pytest.approx([0.0, -1.1])], [pytest.approx([0.0, -2.2])]]
