"""Cross-entropy of the data's tokens: alike (supervised fine-tuning), or weighted by advantages."""

from typing import NamedTuple

import torch
from torch import Tensor

from forethought.losses.elements import (
    checked_mask,
    masked_mean,
    require_axes,
    require_constant,
    require_float32,
    require_one_shape,
)


class CrossEntropy(NamedTuple):
    """A loss and how many tokens it is the mean of."""

    loss: Tensor  # scalar, nats per token, to minimize
    token_count: Tensor  # scalar, int64: how many tokens the mean is over


def token_mean_cross_entropy(*, logprobs_BT: Tensor, mask_BT: Tensor) -> CrossEntropy:
    """How surprised the model is by the response that it should have given.

        L = -sum_bt m_bt log p(y_bt | x_b, y_b<t) / sum_bt m_bt

    Maximum likelihood of the expert's completion given the prompt; the supervised
    stage before RL in RL4VLM, Appendix C.1. A long completion weighs more than a
    short one, token for token; to accumulate micro-batches, see `masked_mean`.

    Args:
        logprobs_BT: of the tokens of the data, nats, fp32.
        mask_BT: bool, True on completion tokens, False on prompt and padding.

    Raises:
        ValueError: not [B, T], shapes differ, a wrong dtype, or no token counts.
    """
    require_axes("BT", logprobs_BT=logprobs_BT)
    require_float32(logprobs_BT=logprobs_BT)
    mask_BT = checked_mask(mask_BT, like=logprobs_BT)
    loss = -masked_mean(values=logprobs_BT, mask=mask_BT)
    return CrossEntropy(loss, token_count=mask_BT.sum())


# Advantage-weighted regression: behavior cloning in which the better responses count more.


def advantage_weighted_loss(
    *, logprobs_N: Tensor, completions_N: Tensor, weights_U: Tensor
) -> Tensor:
    """How surprised the policy is by the data's responses, each as important as its weight.

        L = -mean_n(w_u(n) log π(a_n | s_n))

    Peng et al. 2019 (AWR), with whole responses for actions, as in offline ArCHer (Zhou et al.
    2024): log π(u|s) is the sum over the response's tokens, so that all of them have its weight.
    The mean is over tokens; where all weights are 1 this is the loss of behavior cloning.

    Args:
        logprobs_N: of the responses' tokens, nats, fp32.
        answers_N: int64, which response each token belongs to, 0 to U - 1.
        weights_U: of the responses, at least 0, fp32, without gradient.

    Returns:
        A scalar, in nats per token.

    Raises:
        ValueError: shapes differ, a wrong dtype, a weight with gradient or below 0, or no token.
    """
    require_axes("N", logprobs_N=logprobs_N, completions_N=completions_N)
    require_axes("U", weights_U=weights_U)
    require_one_shape(logprobs_N=logprobs_N, completions_N=completions_N)
    require_float32(logprobs_N=logprobs_N, weights_U=weights_U)
    require_constant(weights_U=weights_U)
    if completions_N.dtype != torch.int64 or len(completions_N) == 0:
        raise ValueError(f"answers_N: expected tokens, int64, got {completions_N}")
    if not bool((weights_U >= 0).all()):
        raise ValueError(f"weights_U: expected at least 0, got {weights_U}")
    return -(weights_U[completions_N] * logprobs_N).mean()
