"""Each objective of preferences: value and slope by hand.

The pair that most rows use: r(y⁺) = log(0.5·0.5 / (0.25·0.25)) = log 4, of which the
thoughts give log 2 and the action log 2; r(y⁻) = log(0.25·0.25 / (0.5·0.25)) = -log 2, all of
it from the thoughts. With β = 1 the margin is log 8, σ(-log 8) = 1/9 and -log σ(log 8) = log 9/8.
"""

from functools import partial
from math import exp, log, sqrt
from typing import Protocol

import pytest
import torch

from forethought.losses.preference import (
    PreferenceLoss,
    Responses,
    dpo_loss,
    hinge_loss,
    ipo_loss,
    robust_dpo_loss,
    rpo_loss,
    simpo_loss,
)
from forethought.losses.thought_preference import action_weighted_loss, constant_action_loss
from tests.unit.losses.preference.builders import Given, Slopes, answers, slopes

CHOSEN = Given(0.5, 0.5, 0.25, 0.25)
REJECTED = Given(0.25, 0.25, 0.5, 0.25)
CERTAIN_CHOSEN = Given(0.5, 1.0, 0.25, 1.0)
CERTAIN_REJECTED = Given(0.25, 1.0, 0.5, 1.0)


class Objective(Protocol):
    def __call__(self, *, chosen: Responses, rejected: Responses) -> PreferenceLoss: ...


def sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))


# Eq. 6 on this pair: p(a⁺) = 1/2, p(a⁻) = 1/4; r(T⁺) = log 2, r(T⁻) = -log 2.
APW = log(2) / 2 + log(2) / 4
# With the action's reference in the denominator both r gain log 4.
APW_BOTH = (log(2) + log(4)) / 2 - (-log(2) + log(4)) / 4
# Two tokens in the action: square roots, √½ and ½.
APW_MEAN = sqrt(0.5) * log(2) + 0.5 * log(2)

ROWS = [
    pytest.param(
        partial(dpo_loss, beta=1.0),
        (log(9 / 8), log(8), Slopes(-1 / 9, -1 / 9, 1 / 9, 1 / 9)),
        id="dpo",
    ),
    pytest.param(
        # Margin 2 log 8, sigma of it 64/65.
        partial(dpo_loss, beta=2.0),
        (log(65 / 64), 2 * log(8), Slopes(-2 / 65, -2 / 65, 2 / 65, 2 / 65)),
        id="dpo: beta scales margin and slope",
    ),
    pytest.param(
        partial(constant_action_loss, beta=1.0),
        (log(9 / 8), log(8), Slopes(-1 / 9, 0, 1 / 9, 0)),
        id="constant action: the value of dpo, the slope of the thoughts alone",
    ),
    pytest.param(
        partial(action_weighted_loss, beta=1.0),
        (
            -log(sigmoid(APW)),
            APW,
            Slopes(-sigmoid(-APW) / 2, 0, sigmoid(-APW) / 4, 0),
        ),
        id="apw: detached, sequence, thoughts",
    ),
    pytest.param(
        # d(p r)/d log p = p r: 1/2 log 2 on the chosen one's, -1/4 log 2 on the rejected one's.
        partial(action_weighted_loss, beta=1.0, weight_gradient="full"),
        (
            -log(sigmoid(APW)),
            APW,
            Slopes(
                -sigmoid(-APW) / 2,
                -sigmoid(-APW) * log(2) / 2,
                sigmoid(-APW) / 4,
                sigmoid(-APW) * -log(2) / 4,
            ),
        ),
        id="apw: full, sequence, thoughts",
    ),
    pytest.param(
        partial(action_weighted_loss, beta=1.0, weight_normalization="geometric_mean"),
        (
            -log(sigmoid(APW_MEAN)),
            APW_MEAN,
            Slopes(-sigmoid(-APW_MEAN) * sqrt(0.5), 0, sigmoid(-APW_MEAN) / 2, 0),
        ),
        id="apw: detached, geometric mean, thoughts",
    ),
    pytest.param(
        # p^(1/2): its slope is half of itself.
        partial(
            action_weighted_loss,
            beta=1.0,
            weight_gradient="full",
            weight_normalization="geometric_mean",
        ),
        (
            -log(sigmoid(APW_MEAN)),
            APW_MEAN,
            Slopes(
                -sigmoid(-APW_MEAN) * sqrt(0.5),
                -sigmoid(-APW_MEAN) * sqrt(0.5) / 2 * log(2),
                sigmoid(-APW_MEAN) / 2,
                sigmoid(-APW_MEAN) / 4 * -log(2),
            ),
        ),
        id="apw: full, geometric mean, thoughts",
    ),
    pytest.param(
        partial(action_weighted_loss, beta=1.0, reference="thoughts_and_action"),
        (
            -log(sigmoid(APW_BOTH)),
            APW_BOTH,
            Slopes(-sigmoid(-APW_BOTH) / 2, 0, sigmoid(-APW_BOTH) / 4, 0),
        ),
        id="apw: detached, sequence, thoughts and action",
    ),
    pytest.param(
        # Distance 1/(2 beta) = 1: (log 8 - 1)², slope 2 (log 8 - 1).
        partial(ipo_loss, beta=0.5),
        (
            (log(8) - 1) ** 2,
            log(8),
            Slopes(*(2 * (log(8) - 1) * sign for sign in (1, 1, -1, -1))),
        ),
        id="ipo: beyond its distance, drawn back",
    ),
    pytest.param(
        partial(ipo_loss, beta=0.1),
        ((log(8) - 5) ** 2, log(8), Slopes(*(2 * (log(8) - 5) * s for s in (1, 1, -1, -1)))),
        id="ipo: within its distance, drawn apart",
    ),
    pytest.param(
        # (0.75 log 9/8 - 0.25 log 9) / 0.5; slope (0.75 (-1/9) - 0.25 (8/9)) / 0.5 = -11/18.
        partial(robust_dpo_loss, beta=1.0, label_smoothing=0.25),
        (
            1.5 * log(9 / 8) - 0.5 * log(9),
            log(8),
            Slopes(-11 / 18, -11 / 18, 11 / 18, 11 / 18),
        ),
        id="rdpo: a quarter of the labels flipped",
    ),
    pytest.param(
        # log π(y⁺) = log 1/4.
        partial(rpo_loss, beta=1.0, nll_weight=0.5),
        (log(9 / 8) + 0.5 * log(4), log(8), Slopes(-1 / 9 - 0.5, -1 / 9 - 0.5, 1 / 9, 1 / 9)),
        id="rpo: the chosen response's likelihood beside dpo",
    ),
    pytest.param(
        partial(hinge_loss, beta=0.25),
        (1 - 0.25 * log(8), 0.25 * log(8), Slopes(-0.25, -0.25, 0.25, 0.25)),
        id="hinge: below the margin",
    ),
    pytest.param(
        partial(hinge_loss, beta=1.0),
        (0.0, log(8), Slopes(0, 0, 0, 0)),
        id="hinge: beyond the margin, nothing",
    ),
    pytest.param(
        # Five tokens each: (log 1/4 - log 1/16) / 5 = log(4)/5, times 5, less log 2: log 2.
        partial(simpo_loss, beta=5.0, simpo_gamma=log(2)),
        (log(3 / 2), log(4), Slopes(-1 / 3, -1 / 3, 1 / 3, 1 / 3)),
        id="simpo: means per token, less the target margin",
    ),
]


def test_what_all_are_computed_from() -> None:
    """Thoughts and action on both sides of the ratio: 0.5 · 0.4 against 0.25 · 0.1."""
    one = answers(Given(0.5, 0.4, 0.25, 0.1, 3, 2), Given(0.5, 0.5, 0.5, 0.5, 0, 0))
    assert one.logprobs.tolist() == pytest.approx([log(0.2), log(0.25)])
    assert one.log_ratios.tolist() == pytest.approx([log(8), 0.0], abs=1e-6)
    assert one.lengths.tolist() == [5, 1]


@pytest.mark.parametrize(("objective", "expected"), ROWS)
def test_value_and_slope(objective: Objective, expected: tuple[float, float, Slopes]) -> None:
    chosen, rejected = answers(CHOSEN), answers(REJECTED)
    result = objective(chosen=chosen, rejected=rejected)
    loss, margin, slope = expected
    assert result.loss.item() == pytest.approx(loss, abs=1e-6)
    assert result.margins_P.tolist() == [pytest.approx(margin, abs=1e-6)]
    assert not result.margins_P.requires_grad
    assert slopes(result.loss, chosen, rejected) == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("objective", [row.values[0] for row in ROWS], ids=[r.id for r in ROWS])
def test_mean_over_pairs(objective: Objective) -> None:
    """Two pairs cost the mean of what each costs alone, so micro-batches add up."""
    other_chosen, other_rejected = Given(0.4, 0.9, 0.3, 0.8, 4, 1), Given(0.6, 0.7, 0.1, 0.9, 2, 3)
    both = objective(
        chosen=answers(CHOSEN, other_chosen), rejected=answers(REJECTED, other_rejected)
    )
    first = objective(chosen=answers(CHOSEN), rejected=answers(REJECTED))
    second = objective(chosen=answers(other_chosen), rejected=answers(other_rejected))
    assert both.loss.item() == pytest.approx((first.loss.item() + second.loss.item()) / 2)
    assert both.margins_P.tolist() == pytest.approx(
        [*first.margins_P.tolist(), *second.margins_P.tolist()]
    )


def test_equation_5_with_the_right_sign() -> None:
    """Autograd of Eq. 4 is -β Λ (∇ log π(T⁺) - ∇ log π(T⁻)) with Λ = σ(q⁻ - q⁺), and not with
    the printed σ(q⁺ - q⁻)."""
    chosen, rejected = answers(CHOSEN), answers(REJECTED)
    slope = slopes(
        constant_action_loss(chosen=chosen, rejected=rejected, beta=0.3).loss, chosen, rejected
    )
    margin = 0.3 * (chosen.log_ratios - rejected.log_ratios).item()
    assert slope.chosen_thoughts == pytest.approx(-0.3 * sigmoid(-margin))
    assert slope.rejected_thoughts == pytest.approx(0.3 * sigmoid(-margin))
    assert slope.chosen_thoughts != pytest.approx(-0.3 * sigmoid(margin), rel=0.1)


@pytest.mark.parametrize("reference", ["thoughts", "thoughts_and_action"])
@pytest.mark.parametrize("normalization", ["sequence", "geometric_mean"])
@pytest.mark.parametrize("gradient", ["detached", "full"])
def test_certain_actions_make_apw_dpo(gradient: str, normalization: str, reference: str) -> None:
    chosen, rejected = answers(CERTAIN_CHOSEN), answers(CERTAIN_REJECTED)
    weighted = action_weighted_loss(
        chosen=chosen,
        rejected=rejected,
        beta=0.7,
        weight_gradient=gradient,  # pyright: ignore[reportArgumentType]
        weight_normalization=normalization,  # pyright: ignore[reportArgumentType]
        reference=reference,  # pyright: ignore[reportArgumentType]
    )
    plain = dpo_loss(chosen=chosen, rejected=rejected, beta=0.7)
    assert torch.equal(weighted.loss, plain.loss)
    ours, theirs = (slopes(result.loss, chosen, rejected) for result in (weighted, plain))
    assert ours.chosen_thoughts == theirs.chosen_thoughts
    assert ours.rejected_thoughts == theirs.rejected_thoughts


def test_apw_with_detached_weights_is_a_weighted_dpo() -> None:
    """Thoughts alone, each side's log-ratio multiplied by a number that is known beforehand."""
    chosen, rejected = answers(CHOSEN, CERTAIN_CHOSEN), answers(REJECTED, REJECTED)
    weighted = action_weighted_loss(chosen=chosen, rejected=rejected, beta=0.7)

    def scaled(side: Responses) -> Responses:
        weights_P, none_P = side.action_P.detach().exp(), torch.zeros_like(side.thoughts_P)
        return side._replace(
            thoughts_P=weights_P * side.thoughts_P,
            reference_thoughts_P=weights_P * side.reference_thoughts_P,
            action_P=none_P,
            reference_action_P=none_P,
        )

    plain = dpo_loss(chosen=scaled(chosen), rejected=scaled(rejected), beta=0.7)
    assert weighted.loss.item() == pytest.approx(plain.loss.item(), abs=1e-7)
    inputs = [chosen.thoughts_P, rejected.thoughts_P]
    for ours, theirs in zip(
        torch.autograd.grad(weighted.loss, inputs),
        torch.autograd.grad(plain.loss, inputs),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


def test_an_answer_without_an_action_is_certain() -> None:
    """Nothing was left to decide, so its thoughts count whole."""
    chosen = answers(CHOSEN, Given(0.5, 1.0, 0.25, 1.0, 3, 0))
    weighted = action_weighted_loss(
        chosen=chosen,
        rejected=answers(REJECTED, REJECTED),
        beta=1.0,
        weight_normalization="geometric_mean",
    )
    assert weighted.margins_P[1].item() == pytest.approx(log(2) + 0.5 * log(2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            {"action_P": torch.zeros(2)},
            r"expected one shape, got first \[1\]",
            id="another number of pairs",
        ),
        pytest.param(
            {"thoughts_P": torch.zeros(1, dtype=torch.bfloat16)},
            r"chosen.thoughts_P: expected float32, got torch.bfloat16",
            id="bf16",
        ),
        pytest.param(
            {"reference_action_P": torch.zeros(1, requires_grad=True)},
            r"chosen.reference_action_P: expected data without gradient",
            id="gradient into the reference",
        ),
        pytest.param(
            {"thoughts_P": torch.zeros(1, 1)}, r"expected \[P\], got shape \[1, 1\]", id="tokens"
        ),
    ],
)
@pytest.mark.parametrize("objective", [row.values[0] for row in ROWS], ids=[r.id for r in ROWS])
def test_refused(objective: Objective, change: dict[str, torch.Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        objective(chosen=answers(CHOSEN)._replace(**change), rejected=answers(REJECTED))


def test_refused_numbers() -> None:
    chosen, rejected = answers(CHOSEN), answers(REJECTED)
    for objective in (
        dpo_loss,
        constant_action_loss,
        action_weighted_loss,
        ipo_loss,
        hinge_loss,
    ):
        with pytest.raises(ValueError, match="beta: expected more than 0, got 0"):
            objective(chosen=chosen, rejected=rejected, beta=0.0)
    with pytest.raises(ValueError, match=r"label_smoothing: expected 0 up to 0\.5, got 0\.5"):
        robust_dpo_loss(chosen=chosen, rejected=rejected, beta=1.0, label_smoothing=0.5)
    with pytest.raises(ValueError, match="nll_weight: expected 0 or more, got -1"):
        rpo_loss(chosen=chosen, rejected=rejected, beta=1.0, nll_weight=-1.0)
    with pytest.raises(ValueError, match="simpo_gamma: expected 0 or more, got -1"):
        simpo_loss(chosen=chosen, rejected=rejected, beta=1.0, simpo_gamma=-1.0)
    with pytest.raises(ValueError, match="expected at least one pair, got none"):
        dpo_loss(chosen=answers(), rejected=answers(), beta=1.0)
