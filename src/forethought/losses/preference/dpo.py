"""DPO: the winner's log-ratio above the loser's, through a logistic loss."""

from torch.nn.functional import logsigmoid

from forethought.losses.preference.answers import (
    Answers,
    PreferenceLoss,
    require_above_zero,
    require_pairs,
)


def dpo_loss(*, winners: Answers, losers: Answers, beta: float) -> PreferenceLoss:
    """Direct preference optimization, step by step.

        L = -mean log σ(β r(y⁺) - β r(y⁻)),   r(y) = log π_θ(y|x) - log π_ref(y|x)

    Rafailov et al. 2023, Eq. 7; InteractiveCOT, Eq. 1, with one pair per environment
    step. dL/dr(y⁺) = -β σ(-margin) / P: a pair that is ranked well teaches little.

    Args:
        winners: y⁺ of each pair.
        losers: y⁻ of each pair, in the same order.
        beta: β > 0, per nat; the larger, the nearer to the reference.

    Returns:
        The loss, and the margins β r(y⁺) - β r(y⁻).

    Raises:
        ValueError: what `require_pairs` refuses, or β not above 0.
    """
    require_pairs(winners=winners, losers=losers)
    require_above_zero(beta=beta)
    margins_P = beta * (winners.log_ratios - losers.log_ratios)
    return PreferenceLoss(-logsigmoid(margins_P).mean(), margins_P.detach())
