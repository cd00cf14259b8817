"""DPO in which the action's probability is a number, and the thoughts alone are trained."""

from torch.nn.functional import logsigmoid

from forethought.losses.preference.answers import (
    Answers,
    PreferenceLoss,
    require_above_zero,
    require_pairs,
)


def constant_action_loss(*, winners: Answers, losers: Answers, beta: float) -> PreferenceLoss:
    """DPO with log π_θ(a, T) split into a constant and the thoughts.

        L = -mean log σ(q⁺ - q⁻)
        q = β (log p(a|T) + log π_θ(T|x) - log π_ref(a, T|x))

    InteractiveCOT, Eq. 4, where p(a|T) = π_θ(a|x, T) without gradient. Its gradient is
    Eq. 5, dL/d log π_θ(T⁺) = -β σ(q⁻ - q⁺) / P; the paper prints σ(q⁺ - q⁻), with which a
    pair would teach the more the better it is ranked already. The value is DPO's.

    Args:
        winners: (T⁺, a⁺) of each pair.
        losers: (T⁻, a⁻) of each pair, in the same order.
        beta: β > 0, per nat.

    Returns:
        The loss, and the margins q⁺ - q⁻.

    Raises:
        ValueError: what `require_pairs` refuses, or β not above 0.
    """
    require_pairs(winners=winners, losers=losers)
    require_above_zero(beta=beta)
    winners_P, losers_P = (
        side._replace(action_P=side.action_P.detach()).log_ratios for side in (winners, losers)
    )
    margins_P = beta * (winners_P - losers_P)
    return PreferenceLoss(-logsigmoid(margins_P).mean(), margins_P.detach())
