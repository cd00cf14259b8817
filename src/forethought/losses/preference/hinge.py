"""Hinge loss on log-ratios: a pair that is ranked well enough teaches nothing."""

from forethought.losses.preference.answers import (
    Answers,
    PreferenceLoss,
    require_above_zero,
    require_pairs,
)


def hinge_loss(*, winners: Answers, losers: Answers, beta: float) -> PreferenceLoss:
    """Rank calibration with a margin.

        L = mean max(0, 1 - (β r(y⁺) - β r(y⁻)))

    SLiC (Zhao et al. 2023) with log-ratios to the reference, as RSO (Liu et al. 2023)
    writes it. The gradient is -β on r(y⁺) up to the margin of 1, then 0.

    Args:
        winners: y⁺ of each pair.
        losers: y⁻ of each pair, in the same order.
        beta: β > 0, per nat; the margin is 1 / β nats.

    Returns:
        The loss, and the margins β r(y⁺) - β r(y⁻).

    Raises:
        ValueError: what `require_pairs` refuses, or β not above 0.
    """
    require_pairs(winners=winners, losers=losers)
    require_above_zero(beta=beta)
    margins_P = beta * (winners.log_ratios - losers.log_ratios)
    return PreferenceLoss((1 - margins_P).clamp(min=0).mean(), margins_P.detach())
