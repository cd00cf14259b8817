"""IPO: the difference of log-ratios is drawn to a fixed distance, not to infinity."""

from forethought.losses.preference.answers import (
    Answers,
    PreferenceLoss,
    require_above_zero,
    require_pairs,
)


def ipo_loss(*, winners: Answers, losers: Answers, beta: float) -> PreferenceLoss:
    """Identity preference optimization.

        L = mean (r(y⁺) - r(y⁻) - 1 / (2β))²

    Azar et al. 2023, Eq. 17, with their τ as β. DPO's logistic loss pulls a pair that is
    never contradicted apart without end; this one stops at 1 / (2β) nats.

    Args:
        winners: y⁺ of each pair.
        losers: y⁻ of each pair, in the same order.
        beta: β > 0, per nat.

    Returns:
        The loss in nats², and the margins r(y⁺) - r(y⁻) in nats.

    Raises:
        ValueError: what `require_pairs` refuses, or β not above 0.
    """
    require_pairs(winners=winners, losers=losers)
    require_above_zero(beta=beta)
    margins_P = winners.log_ratios - losers.log_ratios
    return PreferenceLoss((margins_P - 1 / (2 * beta)).square().mean(), margins_P.detach())
