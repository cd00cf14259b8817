"""SimPO: mean log-probs instead of log-ratios; there is no reference."""

from torch.nn.functional import logsigmoid

from forethought.losses.preference.answers import (
    Answers,
    PreferenceLoss,
    require_above_zero,
    require_pairs,
)


def simpo_loss(
    *, winners: Answers, losers: Answers, beta: float, simpo_gamma: float
) -> PreferenceLoss:
    """Simple preference optimization.

        L = -mean log σ(β log π_θ(y⁺|x) / |y⁺| - β log π_θ(y⁻|x) / |y⁻| - γ)

    Meng et al. 2024, Eq. 6; |y| counts the tokens of thoughts and action, so that length
    is no reason to prefer. Nothing holds the policy where it began.

    Args:
        winners: y⁺ of each pair; its reference is not used.
        losers: y⁻ of each pair, in the same order.
        beta: β > 0, per nat and token; the paper's are 2 to 10.
        simpo_gamma: γ, 0 or more.

    Returns:
        The loss, and the margins less γ.

    Raises:
        ValueError: what `require_pairs` refuses, β not above 0, or γ below 0.
    """
    require_pairs(winners=winners, losers=losers)
    require_above_zero(beta=beta)
    if not 0 <= simpo_gamma < float("inf"):
        raise ValueError(f"simpo_gamma: expected 0 or more, got {simpo_gamma}")
    means_P = winners.logprobs / winners.lengths - losers.logprobs / losers.lengths
    margins_P = beta * means_P
    return PreferenceLoss(-logsigmoid(margins_P - simpo_gamma).mean(), margins_P.detach())
