"""rDPO: DPO for preferences of which some are known to be the wrong way round."""

from torch.nn.functional import logsigmoid

from forethought.losses.preference.answers import (
    Answers,
    PreferenceLoss,
    require_above_zero,
    require_pairs,
)


def robust_dpo_loss(
    *, winners: Answers, losers: Answers, beta: float, label_smoothing: float
) -> PreferenceLoss:
    """DPO whose expectation over flipped labels is DPO's over true ones.

        L = mean ((1 - ε) l(h) - ε l(-h)) / (1 - 2ε)
        l(h) = -log σ(h),   h = β r(y⁺) - β r(y⁻)

    Chowdhury et al. 2024. ε = 0 is DPO. The loss may be negative, and falls
    without end once h is large: dL/dh tends to -ε / (1 - 2ε).

    Args:
        winners: y⁺ of each pair, as labeled.
        losers: y⁻ of each pair, in the same order.
        beta: β > 0, per nat.
        label_smoothing: ε in [0, 0.5), the share of pairs whose label is flipped.

    Returns:
        The loss, and the margins h.

    Raises:
        ValueError: what `require_pairs` refuses, β not above 0, or ε out of range.
    """
    require_pairs(winners=winners, losers=losers)
    require_above_zero(beta=beta)
    if not 0 <= label_smoothing < 0.5:
        raise ValueError(f"label_smoothing: expected 0 up to 0.5, got {label_smoothing}")
    margins_P = beta * (winners.log_ratios - losers.log_ratios)
    as_labeled_P, flipped_P = -logsigmoid(margins_P), -logsigmoid(-margins_P)
    losses_P = ((1 - label_smoothing) * as_labeled_P - label_smoothing * flipped_P) / (
        1 - 2 * label_smoothing
    )
    return PreferenceLoss(losses_P.mean(), margins_P.detach())
