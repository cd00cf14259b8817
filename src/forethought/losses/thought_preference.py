"""Preference losses that tell thoughts from actions (InteractiveCOT), and consistency (APC)."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from forethought.losses.elements import (
    require_axes,
    require_constant,
    require_float32,
    require_one_shape,
)
from forethought.losses.preference import (
    PreferenceLoss,
    Responses,
    require_above_zero,
    require_pairs,
)


def constant_action_loss(*, chosen: Responses, rejected: Responses, beta: float) -> PreferenceLoss:
    """DPO with log π_θ(a, T) split into a constant and the thoughts.

        L = -mean log σ(q⁺ - q⁻)
        q = β (log p(a|T) + log π_θ(T|x) - log π_ref(a, T|x))

    InteractiveCOT, Eq. 4, where p(a|T) = π_θ(a|x, T) without gradient. Its gradient is
    Eq. 5, dL/d log π_θ(T⁺) = -β σ(q⁻ - q⁺) / P; the paper prints σ(q⁺ - q⁻), with which a
    pair would teach the more the better it is ranked already. The value is DPO's.

    Args:
        chosen: (T⁺, a⁺) of each pair.
        rejected: (T⁻, a⁻) of each pair, in the same order.
        beta: β > 0, per nat.

    Returns:
        The loss, and the margins q⁺ - q⁻.

    Raises:
        ValueError: what `require_pairs` refuses, or β not above 0.
    """
    require_pairs(chosen=chosen, rejected=rejected)
    require_above_zero(beta=beta)
    chosen_P, rejected_P = (
        side._replace(action_P=side.action_P.detach()).log_ratios for side in (chosen, rejected)
    )
    margins_P = beta * (chosen_P - rejected_P)
    return PreferenceLoss(-logsigmoid(margins_P).mean(), margins_P.detach())


WeightGradient = Literal["detached", "full"]
WeightNormalization = Literal["sequence", "geometric_mean"]
WeightedReference = Literal["thoughts", "thoughts_and_action"]


def action_weighted_loss(
    *,
    chosen: Responses,
    rejected: Responses,
    beta: float,
    weight_gradient: WeightGradient = "detached",
    weight_normalization: WeightNormalization = "sequence",
    reference: WeightedReference = "thoughts",
) -> PreferenceLoss:
    """DPO on thoughts, each response's log-ratio weighted by p(a|T).

        L = -mean log σ(β p(a⁺|T⁺) r(T⁺) - β p(a⁻|T⁻) r(T⁻))
        r(T) = log π_θ(T|x) - log π_ref(T|x)

    InteractiveCOT, Eq. 6. The action itself is trained through its weight alone, if at all:

    - weight_gradient: `detached` takes p as a number, as Eq. 4 does; `full` trains it too.
    - weight_normalization: p is the probability of the action's whole token sequence, or the
      geometric mean over its tokens, p^(1/n), which long actions do not make small.
    - reference: Eq. 6 sets thoughts against thoughts; Eq. 8 subtracts log π_ref(a, T|x),
      which shifts r(T) by the constant -log π_ref(a|x, T).

    With p = 1 on both sides all of these are DPO.

    Args:
        chosen: (T⁺, a⁺) of each pair.
        rejected: (T⁻, a⁻) of each pair, in the same order.
        beta: β > 0, per nat.

    Returns:
        The loss, and the margins inside σ.

    Raises:
        ValueError: what `require_pairs` refuses, or β not above 0.
    """
    require_pairs(chosen=chosen, rejected=rejected)
    require_above_zero(beta=beta)
    weighted: list[Tensor] = []
    for side in (chosen, rejected):
        ratios_P = side.thoughts_P - side.reference_thoughts_P
        if reference == "thoughts_and_action":
            ratios_P = ratios_P - side.reference_action_P
        weights_P = action_probabilities(
            logprobs_P=side.action_P,
            tokens_P=side.action_tokens_P,
            normalization=weight_normalization,
        )
        if weight_gradient == "detached":
            weights_P = weights_P.detach()
        weighted.append(weights_P * ratios_P)
    margins_P = beta * (weighted[0] - weighted[1])
    return PreferenceLoss(-logsigmoid(margins_P).mean(), margins_P.detach())


def action_probabilities(
    *, logprobs_P: Tensor, tokens_P: Tensor, normalization: WeightNormalization
) -> Tensor:
    """p(a|T): of the whole action, or the geometric mean over its tokens; 1 without tokens.

    Args:
        logprobs_P: log π(a|x, T), summed over tokens, nats, fp32.
        tokens_P: how many there are, int64.
        normalization: whether to divide by them.

    Returns:
        [P], in (0, 1].
    """
    if normalization == "geometric_mean":
        logprobs_P = logprobs_P / tokens_P.clamp(min=1)
    return torch.exp(logprobs_P)


def action_consistency_loss(*, action_P: Tensor, reference_action_P: Tensor) -> Tensor:
    """How far the probability of the action, given the thoughts, has moved from the reference's.

        C = mean (π_θ(a⁺|x, T⁺) - π_ref(a⁺|x, T⁺))²

    InteractiveCOT, the term of Eq. 7 that κ multiplies; probabilities of whole actions,
    not log-probs, so that an action which was improbable from the start costs little.
    dC/d log π_θ = 2 π_θ (π_θ - π_ref) / P.

    Args:
        action_P: log π_θ(a⁺|x, T⁺) of the chosen responses, summed over tokens, nats, fp32.
        reference_action_P: the reference's, no gradient.

    Returns:
        A scalar from 0 to 1.

    Raises:
        ValueError: not [P], shapes differ, not float32, or a gradient into the reference.
    """
    tensors = {"action_P": action_P, "reference_action_P": reference_action_P}
    require_axes("P", **tensors)
    require_one_shape(**tensors)
    require_float32(**tensors)
    require_constant(reference_action_P=reference_action_P)
    return (torch.exp(action_P) - torch.exp(reference_action_P)).square().mean()
