"""KTO: each answer is good or bad by itself; nothing is compared."""

import torch
from torch import Tensor

from forethought.losses.checks import require_axes, require_float32, require_one_shape
from forethought.losses.preference.answers import require_above_zero


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
    and never below 0. Answers that the policy itself gave lately need no mismatched
    prompts for it: the mean of their r is that estimate. An answer far from z on either
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
