"""Exact entropy of every next-token distribution."""

import torch
from torch import Tensor

from forethought.losses.checks import require_float32


def token_entropy(*, logprobs_V: Tensor) -> Tensor:
    """How undecided the policy is at each token.

        H = -sum_v p_v log p_v

    Over the whole vocabulary, not an estimate from the sampled tokens. Reduce with
    `masked_mean`; an entropy bonus subtracts its multiple from the loss.

    Args:
        logprobs_V: [..., V], normalized log-probs of all tokens, nats, fp32: the output
            of a log-softmax, at whichever temperature the tokens are sampled. A
            forbidden token has minus infinity.

    Returns:
        [...], nats, fp32, from 0 to log V.

    Raises:
        ValueError: not float32.
    """
    require_float32(logprobs_V=logprobs_V)
    # p log p is 0 where p is 0; the finite floor keeps it from becoming 0 times infinity.
    finite_V = logprobs_V.clamp(min=torch.finfo(torch.float32).min)
    return -(logprobs_V.exp() * finite_V).sum(dim=-1)
