"""Advantage-weighted regression: imitation in which the better answers count more."""

import torch
from torch import Tensor

from forethought.losses.checks import (
    require_axes,
    require_constant,
    require_float32,
    require_one_shape,
)


def advantage_weighted_loss(*, logprobs_N: Tensor, answers_N: Tensor, weights_U: Tensor) -> Tensor:
    """How surprised the policy is by the data's answers, each as important as its weight.

        L = -mean_n(w_u(n) log π(a_n | s_n))

    Peng et al. 2019 (AWR), with whole answers for actions, as in offline ArCHer (Zhou et al.
    2024): log π(u|s) is the sum over the answer's tokens, so that all of them have its weight.
    The mean is over tokens; where all weights are 1 this is the loss of imitation.

    Args:
        logprobs_N: of the answers' tokens, nats, fp32.
        answers_N: int64, which answer each token belongs to, 0 to U - 1.
        weights_U: of the answers, at least 0, fp32, without gradient.

    Returns:
        A scalar, in nats per token.

    Raises:
        ValueError: shapes differ, a wrong dtype, a weight with gradient or below 0, or no token.
    """
    require_axes("N", logprobs_N=logprobs_N, answers_N=answers_N)
    require_axes("U", weights_U=weights_U)
    require_one_shape(logprobs_N=logprobs_N, answers_N=answers_N)
    require_float32(logprobs_N=logprobs_N, weights_U=weights_U)
    require_constant(weights_U=weights_U)
    if answers_N.dtype != torch.int64 or len(answers_N) == 0:
        raise ValueError(f"answers_N: expected tokens, int64, got {answers_N}")
    if not bool((weights_U >= 0).all()):
        raise ValueError(f"weights_U: expected at least 0, got {weights_U}")
    return -(weights_U[answers_N] * logprobs_N).mean()
