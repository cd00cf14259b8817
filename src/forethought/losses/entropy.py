"""Exact entropy of every next-token distribution."""

import torch
from torch import Tensor

from forethought.losses.checks import require_axes


def token_entropy(*, logits_BTV: Tensor) -> Tensor:
    """How undecided the policy is at each token.

        H_bt = -sum_v p_v log p_v,   p = softmax(logits_bt)

    Over the whole vocabulary, not an estimate from the sampled tokens. Reduce with
    `masked_mean`; an entropy bonus subtracts its multiple from the loss. For the
    entropy of a distribution sampled at a temperature, divide the logits by it first.

    Args:
        logits_BTV: of any floating dtype; computed in fp32, which holds two further
            tensors of this size. A forbidden token has minus infinity.

    Returns:
        [B, T], nats, fp32, from 0 to log V.

    Raises:
        ValueError: not [B, T, V], or not floating.
    """
    require_axes("BTV", logits_BTV=logits_BTV)
    if not logits_BTV.is_floating_point():
        raise ValueError(f"logits_BTV: expected a floating dtype, got {logits_BTV.dtype}")
    logprobs_BTV = logits_BTV.float().log_softmax(dim=2)
    # p log p is 0 where p is 0; the finite floor keeps it from becoming 0 times infinity.
    finite_BTV = logprobs_BTV.clamp(min=torch.finfo(torch.float32).min)
    return -(logprobs_BTV.exp() * finite_BTV).sum(dim=2)
