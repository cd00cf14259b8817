"""Clipped policy-gradient loss."""

from typing import NamedTuple

import torch
from torch import Tensor

from forethought.losses.aggregation import Aggregation, aggregate, masked_mean
from forethought.losses.checks import (
    checked_mask,
    require_constant,
    require_float32,
    require_one_shape,
)


class PolicyLoss(NamedTuple):
    loss: Tensor  # scalar, to minimize
    clip_fraction: Tensor  # share of elements whose ratio left [1 - clip, 1 + clip]
    approximate_kl: Tensor  # mean of (ratio - 1) - log ratio, nats, never negative
    maximum_deviation: Tensor  # largest |ratio - 1|; 0 before the first update


def clipped_policy_loss(
    *,
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor | None,
    clip: float,
    aggregation: Aggregation = "token_mean",
) -> PolicyLoss:
    """Pessimistic bound on the policy improvement.

        L = -mean(min(r A, clamp(r, 1 - c, 1 + c) A)),   r = exp(log p - log p_old)

    Schulman et al. 2017, Eq. 7; the KL estimate is Schulman 2020, "k3". An element
    is a step or a token, and the mean is over the elements that count; the loss of tokens
    may be aggregated otherwise, the statistics are not:

    - `ratio: step`, shapes [B]: the log-prob of a thinking agent's step is
      `sequence_logprob` (RL4VLM, Eq. 4.3), on both sides of the ratio.
    - `ratio: token`, shapes [B, T]: log-probs from `thought_scaled_logprobs`, each
      step's advantage repeated over its tokens by the caller. With λ = 0 the ratio
      of a thought token is 1: it adds the constant -A without gradient, yet it is
      counted in the mean and so shrinks the action's gradient. To train the action
      alone at full strength, mask the thoughts.

    Args:
        logprobs: under the policy being trained, nats, fp32.
        old_logprobs: under the policy that acted, nats, fp32, no gradient.
        advantages: any scale, fp32, no gradient; normalize before, not here.
        mask: bool, True where the element counts; None: all do.
        clip: c > 0.
        aggregation: of the tokens [B, T], see `aggregate`; steps [B] have a plain mean.

    Raises:
        ValueError: shapes differ or are neither [B] nor [B, T], a wrong dtype, data
            that require gradient, c not positive, no element counts, or another
            aggregation of steps than their mean.
    """
    require_one_shape(logprobs=logprobs, old_logprobs=old_logprobs, advantages=advantages)
    require_float32(logprobs=logprobs, old_logprobs=old_logprobs, advantages=advantages)
    require_constant(old_logprobs=old_logprobs, advantages=advantages)
    if logprobs.ndim not in (1, 2):
        raise ValueError(f"expected steps [B] or tokens [B, T], got shape {list(logprobs.shape)}")
    if not clip > 0:
        raise ValueError(f"clip: expected more than 0, got {clip}")
    if logprobs.ndim == 1 and aggregation != "token_mean":
        raise ValueError(f"aggregation of steps [B]: expected token_mean, got {aggregation}")
    mask = checked_mask(mask, like=logprobs)
    # Padding may hold infinities: it leaves before the exponential, whose gradient
    # there would be infinity times zero.
    log_ratio = torch.where(mask, logprobs - old_logprobs, 0.0)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    objective = torch.minimum(ratio * advantages, clipped * advantages)
    if objective.ndim == 1:
        loss = -masked_mean(values=objective, mask=mask)
    else:
        loss = -aggregate(values_BT=objective, mask_BT=mask, aggregation=aggregation)
    with torch.no_grad():
        deviation = log_ratio.expm1()  # ratio - 1, exact also where the ratio is nearly 1
        clip_fraction = masked_mean(values=(clipped != ratio).float(), mask=mask)
        approximate_kl = masked_mean(values=deviation - log_ratio, mask=mask)
        maximum_deviation = deviation.abs().max()  # masked elements deviate by 0
    return PolicyLoss(loss, clip_fraction, approximate_kl, maximum_deviation)
