"""Preference losses that ask for more than an order: REFUEL for returns, XPO for responses that a
policy gave itself."""

import torch
from torch import Tensor

from forethought.losses.elements import (
    require_axes,
    require_constant,
    require_float32,
    require_one_shape,
)
from forethought.losses.preference import (
    PreferenceLoss,
    Responses,
    dpo_loss,
    require_above_zero,
    require_pairs,
)


def refuel_loss(
    *, chosen: Responses, rejected: Responses, return_gaps_P: Tensor, beta: float
) -> PreferenceLoss:
    """Regression of the difference of log-ratios onto the difference of returns.

        L = mean (β r(y⁺) - β r(y⁻) - (R⁺ - R⁻))²

    Gao et al. 2024 (REFUEL), with their 1/η as β; R is the return from the response on. Both
    responses are given in one state: the minimum is then π_θ ∝ π_ref exp(Q / β), one step of
    mirror descent where the reference is the policy that acted. The order of the two does not
    matter, and a pair that is apart as far as its returns teaches nothing:
    dL/dr(y⁺) = 2 β (margin - gap) / P.

    Args:
        chosen: y⁺ of each pair.
        rejected: y⁻ of each pair, in the same order, to the same prompt.
        return_gaps_P: R⁺ - R⁻, in units of return, fp32, no gradient.
        beta: β > 0, units of return per nat; the larger, the nearer to the reference.

    Returns:
        The loss, in squared units of return, and the margins β r(y⁺) - β r(y⁻).

    Raises:
        ValueError: what `require_pairs` refuses, β not above 0, or not one gap per pair, fp32 and
            without gradient.
    """
    require_pairs(chosen=chosen, rejected=rejected)
    require_above_zero(beta=beta)
    require_axes("P", return_gaps_P=return_gaps_P)
    require_one_shape(thoughts_P=chosen.thoughts_P, return_gaps_P=return_gaps_P)
    require_float32(return_gaps_P=return_gaps_P)
    require_constant(return_gaps_P=return_gaps_P)
    margins_P = beta * (chosen.log_ratios - rejected.log_ratios)
    return PreferenceLoss((margins_P - return_gaps_P).square().mean(), margins_P.detach())


def xpo_loss(
    *, chosen: Responses, rejected: Responses, beta: float, alpha: float
) -> PreferenceLoss:
    """Exploratory preference optimization: DPO, and a bonus for leaving what the reference does.

        L = DPO + α mean(w(y) log π_θ(y|x)),   w(y) = min(1, π_ref(y|x) / π_θ(y|x))

    Xie et al. 2024 (XPO), Algorithm 1: there the second mean is over responses of the reference.
    Here both responses of a pair are the policy's own, so each counts with the ratio of the two
    probabilities, without gradient and at most 1 (Ionides 2008): a response that the policy has
    made likelier than the reference does counts less. Without the weight the bonus would have
    no mean effect, E_π ∇ log π = 0.

    Args:
        chosen: y⁺ of each pair.
        rejected: y⁻ of each pair, in the same order.
        beta: β > 0, per nat.
        alpha: α, per nat, 0 or more; 0 is DPO. The second mean is over all 2P responses.

    Returns:
        The loss, and DPO's margins.

    Raises:
        ValueError: what `dpo_loss` refuses, or α below 0.
    """
    if not 0 <= alpha < float("inf"):
        raise ValueError(f"alpha: expected 0 or more, got {alpha}")
    ranked = dpo_loss(chosen=chosen, rejected=rejected, beta=beta)
    log_ratios_B = torch.cat([chosen.log_ratios, rejected.log_ratios]).detach()
    logprobs_B = torch.cat([chosen.logprobs, rejected.logprobs])
    weights_B = torch.exp(-log_ratios_B).clamp(max=1)
    return PreferenceLoss(ranked.loss + alpha * (weights_B * logprobs_B).mean(), ranked.margins_P)
