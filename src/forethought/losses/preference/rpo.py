"""RPO: DPO, and the winner's own likelihood, lest both answers become unlikely."""

from forethought.losses.preference.answers import Answers, PreferenceLoss
from forethought.losses.preference.dpo import dpo_loss


def rpo_loss(
    *, winners: Answers, losers: Answers, beta: float, nll_weight: float
) -> PreferenceLoss:
    """Regularized preference optimization.

        L = DPO + α mean(-log π_θ(y⁺|x))

    Liu et al. 2024 ("Your SFT loss is implicitly an adversarial regularizer"), with the
    winners as the distribution to imitate and their ηβ as α. DPO alone is content when
    the loser falls faster than the winner.

    Args:
        winners: y⁺ of each pair.
        losers: y⁻ of each pair, in the same order.
        beta: β > 0, per nat.
        nll_weight: α, per nat, 0 or more; 0 is DPO.

    Returns:
        The loss, and DPO's margins.

    Raises:
        ValueError: what `dpo_loss` refuses, or α below 0.
    """
    if not 0 <= nll_weight < float("inf"):
        raise ValueError(f"nll_weight: expected 0 or more, got {nll_weight}")
    ranked = dpo_loss(winners=winners, losers=losers, beta=beta)
    return PreferenceLoss(ranked.loss - nll_weight * winners.logprobs.mean(), ranked.margins_P)
