"""How wrong a policy is about which of two completions is better: one function per loss."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from forethought.losses.elements import (
    require_axes,
    require_constant,
    require_float32,
    require_one_shape,
)


class Responses(NamedTuple):
    """One response y = (T, a) of each of P pairs: thoughts T, then action a. Log-probs in nats,
    fp32, [P], summed over tokens; 0 where there are none."""

    thoughts_P: Tensor  # log π_θ(T | x)
    action_P: Tensor  # log π_θ(a | x, T)
    reference_thoughts_P: Tensor  # log π_ref(T | x), no gradient
    reference_action_P: Tensor  # log π_ref(a | x, T), no gradient
    thought_tokens_P: Tensor  # int64
    action_tokens_P: Tensor  # int64

    @property
    def logprobs(self) -> Tensor:
        """log π_θ(y | x), [P]."""
        return self.thoughts_P + self.action_P

    @property
    def log_ratios(self) -> Tensor:
        """r(y) = log π_θ(y | x) - log π_ref(y | x), nats, [P]."""
        return self.logprobs - self.reference_thoughts_P - self.reference_action_P

    @property
    def lengths(self) -> Tensor:
        """Tokens of the whole response, [P]; at least 1, to divide by."""
        return (self.thought_tokens_P + self.action_tokens_P).clamp(min=1)


class PreferenceLoss(NamedTuple):
    """An objective's value, and by how much each chosen response is preferred."""

    loss: Tensor  # scalar, mean over pairs, to minimize
    margins_P: Tensor  # above 0: the chosen one is preferred; in the loss's unit, no gradient


def require_pairs(*, chosen: Responses, rejected: Responses) -> None:
    """The door of every objective.

    Raises:
        ValueError: not one number per pair, no pair, log-probs that are not float32, or a
            gradient into the reference.
    """
    for side, responses in (("chosen", chosen), ("rejected", rejected)):
        named = {f"{side}.{name}": tensor for name, tensor in responses._asdict().items()}
        require_axes("P", **named)
        require_one_shape(first=chosen.thoughts_P, **named)
        logprobs = {name: tensor for name, tensor in named.items() if "tokens" not in name}
        require_float32(**logprobs)
        require_constant(**{n: tensor for n, tensor in logprobs.items() if "reference" in n})
    if chosen.thoughts_P.numel() == 0:
        raise ValueError("expected at least one pair, got none")


def require_above_zero(**numbers: float) -> None:
    """Refuses a scale that is not one.

    Raises:
        ValueError: 0 or below, or not a number.
    """
    for name, number in numbers.items():
        if not 0 < number < float("inf"):
            raise ValueError(f"{name}: expected more than 0, got {number}")


def dpo_loss(*, chosen: Responses, rejected: Responses, beta: float) -> PreferenceLoss:
    """Direct preference optimization, step by step.

        L = -mean log σ(β r(y⁺) - β r(y⁻)),   r(y) = log π_θ(y|x) - log π_ref(y|x)

    Rafailov et al. 2023, Eq. 7; InteractiveCOT, Eq. 1, with one pair per environment
    step. dL/dr(y⁺) = -β σ(-margin) / P: a pair that is ranked well teaches little.

    Args:
        chosen: y⁺ of each pair.
        rejected: y⁻ of each pair, in the same order.
        beta: β > 0, per nat; the larger, the nearer to the reference.

    Returns:
        The loss, and the margins β r(y⁺) - β r(y⁻).

    Raises:
        ValueError: what `require_pairs` refuses, or β not above 0.
    """
    require_pairs(chosen=chosen, rejected=rejected)
    require_above_zero(beta=beta)
    margins_P = beta * (chosen.log_ratios - rejected.log_ratios)
    return PreferenceLoss(-logsigmoid(margins_P).mean(), margins_P.detach())


def ipo_loss(*, chosen: Responses, rejected: Responses, beta: float) -> PreferenceLoss:
    """Identity preference optimization.

        L = mean (r(y⁺) - r(y⁻) - 1 / (2β))²

    Azar et al. 2023, Eq. 17, with their τ as β. DPO's logistic loss pulls a pair that is
    never contradicted apart without end; this one stops at 1 / (2β) nats.

    Args:
        chosen: y⁺ of each pair.
        rejected: y⁻ of each pair, in the same order.
        beta: β > 0, per nat.

    Returns:
        The loss in nats², and the margins r(y⁺) - r(y⁻) in nats.

    Raises:
        ValueError: what `require_pairs` refuses, or β not above 0.
    """
    require_pairs(chosen=chosen, rejected=rejected)
    require_above_zero(beta=beta)
    margins_P = chosen.log_ratios - rejected.log_ratios
    return PreferenceLoss((margins_P - 1 / (2 * beta)).square().mean(), margins_P.detach())


def hinge_loss(*, chosen: Responses, rejected: Responses, beta: float) -> PreferenceLoss:
    """Rank calibration with a margin.

        L = mean max(0, 1 - (β r(y⁺) - β r(y⁻)))

    SLiC (Zhao et al. 2023) with log-ratios to the reference, as RSO (Liu et al. 2023)
    writes it. The gradient is -β on r(y⁺) up to the margin of 1, then 0.

    Args:
        chosen: y⁺ of each pair.
        rejected: y⁻ of each pair, in the same order.
        beta: β > 0, per nat; the margin is 1 / β nats.

    Returns:
        The loss, and the margins β r(y⁺) - β r(y⁻).

    Raises:
        ValueError: what `require_pairs` refuses, or β not above 0.
    """
    require_pairs(chosen=chosen, rejected=rejected)
    require_above_zero(beta=beta)
    margins_P = beta * (chosen.log_ratios - rejected.log_ratios)
    return PreferenceLoss((1 - margins_P).clamp(min=0).mean(), margins_P.detach())


def robust_dpo_loss(
    *, chosen: Responses, rejected: Responses, beta: float, label_smoothing: float
) -> PreferenceLoss:
    """DPO whose expectation over flipped labels is DPO's over true ones.

        L = mean ((1 - ε) l(h) - ε l(-h)) / (1 - 2ε)
        l(h) = -log σ(h),   h = β r(y⁺) - β r(y⁻)

    Chowdhury et al. 2024. ε = 0 is DPO. The loss may be negative, and falls
    without end once h is large: dL/dh tends to -ε / (1 - 2ε).

    Args:
        chosen: y⁺ of each pair, as labeled.
        rejected: y⁻ of each pair, in the same order.
        beta: β > 0, per nat.
        label_smoothing: ε in [0, 0.5), the share of pairs whose label is flipped.

    Returns:
        The loss, and the margins h.

    Raises:
        ValueError: what `require_pairs` refuses, β not above 0, or ε out of range.
    """
    require_pairs(chosen=chosen, rejected=rejected)
    require_above_zero(beta=beta)
    if not 0 <= label_smoothing < 0.5:
        raise ValueError(f"label_smoothing: expected 0 up to 0.5, got {label_smoothing}")
    margins_P = beta * (chosen.log_ratios - rejected.log_ratios)
    as_labeled_P, flipped_P = -logsigmoid(margins_P), -logsigmoid(-margins_P)
    losses_P = ((1 - label_smoothing) * as_labeled_P - label_smoothing * flipped_P) / (
        1 - 2 * label_smoothing
    )
    return PreferenceLoss(losses_P.mean(), margins_P.detach())


def rpo_loss(
    *, chosen: Responses, rejected: Responses, beta: float, nll_weight: float
) -> PreferenceLoss:
    """Regularized preference optimization.

        L = DPO + α mean(-log π_θ(y⁺|x))

    Liu et al. 2024 ("Your SFT loss is implicitly an adversarial regularizer"), with the
    chosen responses as the distribution to imitate and their ηβ as α. DPO alone is content when
    the rejected response falls faster than the chosen one.

    Args:
        chosen: y⁺ of each pair.
        rejected: y⁻ of each pair, in the same order.
        beta: β > 0, per nat.
        nll_weight: α, per nat, 0 or more; 0 is DPO.

    Returns:
        The loss, and DPO's margins.

    Raises:
        ValueError: what `dpo_loss` refuses, or α below 0.
    """
    if not 0 <= nll_weight < float("inf"):
        raise ValueError(f"nll_weight: expected 0 or more, got {nll_weight}")
    ranked = dpo_loss(chosen=chosen, rejected=rejected, beta=beta)
    return PreferenceLoss(ranked.loss - nll_weight * chosen.logprobs.mean(), ranked.margins_P)


def simpo_loss(
    *, chosen: Responses, rejected: Responses, beta: float, simpo_gamma: float
) -> PreferenceLoss:
    """Simple preference optimization.

        L = -mean log σ(β log π_θ(y⁺|x) / |y⁺| - β log π_θ(y⁻|x) / |y⁻| - γ)

    Meng et al. 2024, Eq. 6; |y| counts the tokens of thoughts and action, so that length
    is no reason to prefer. Nothing holds the policy where it began.

    Args:
        chosen: y⁺ of each pair; its reference is not used.
        rejected: y⁻ of each pair, in the same order.
        beta: β > 0, per nat and token; the paper's are 2 to 10.
        simpo_gamma: γ, 0 or more.

    Returns:
        The loss, and the margins less γ.

    Raises:
        ValueError: what `require_pairs` refuses, β not above 0, or γ below 0.
    """
    require_pairs(chosen=chosen, rejected=rejected)
    require_above_zero(beta=beta)
    if not 0 <= simpo_gamma < float("inf"):
        raise ValueError(f"simpo_gamma: expected 0 or more, got {simpo_gamma}")
    means_P = chosen.logprobs / chosen.lengths - rejected.logprobs / rejected.lengths
    margins_P = beta * means_P
    return PreferenceLoss(-logsigmoid(margins_P - simpo_gamma).mean(), margins_P.detach())


def kto_loss(
    *,
    log_ratios_B: Tensor,
    is_desirable_B: Tensor,
    reference_point: float,
    beta: float,
    desirable_weight: float = 1.0,
    undesirable_weight: float = 1.0,
) -> Tensor:
    """Kahneman-Tversky optimization: gains and losses against a reference point.

        L = mean (λ - v),   v = λ_D σ(β (r(y) - z))   where y is desirable,
                            v = λ_U σ(β (z - r(y)))   where it is not

    Ethayarajh et al. 2024, Eq. 8. z stands for KL(π_θ ‖ π_ref), estimated without gradient
    and never below 0. Responses that the policy itself gave lately need no mismatched
    prompts for it: the mean of their r is that estimate. A response far from z on either
    side teaches little: dL/dr = ∓β λ σ(1 - σ) / B.

    Args:
        log_ratios_B: r(y) = log π_θ(y|x) - log π_ref(y|x), nats, fp32.
        is_desirable_B: bool.
        reference_point: z, nats, 0 or more.
        beta: β > 0, per nat.
        desirable_weight: λ_D > 0.
        undesirable_weight: λ_U > 0.

    Returns:
        A scalar.

    Raises:
        ValueError: not [B], shapes differ, a wrong dtype, z below 0, or a scale not above 0.
    """
    require_axes("B", log_ratios_B=log_ratios_B)
    require_one_shape(log_ratios_B=log_ratios_B, is_desirable_B=is_desirable_B)
    require_float32(log_ratios_B=log_ratios_B)
    require_above_zero(
        beta=beta, desirable_weight=desirable_weight, undesirable_weight=undesirable_weight
    )
    if is_desirable_B.dtype != torch.bool:
        raise ValueError(f"is_desirable_B: expected bool, got {is_desirable_B.dtype}")
    if not 0 <= reference_point < float("inf"):
        raise ValueError(f"reference_point: expected 0 or more, got {reference_point}")
    signs_B = torch.where(is_desirable_B, 1.0, -1.0)
    weights_B = torch.where(is_desirable_B, desirable_weight, undesirable_weight)
    values_B = torch.sigmoid(beta * signs_B * (log_ratios_B - reference_point))
    return (weights_B * (1 - values_B)).mean()
