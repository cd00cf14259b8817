"""Weighted cross-entropy of Q-SFT: probabilities that learn to be values."""

from typing import NamedTuple

import torch
from torch import Tensor

from forethought.losses.checks import (
    require_axes,
    require_constant,
    require_float32,
    require_one_shape,
)


class LikelihoodLoss(NamedTuple):
    loss: Tensor  # scalar, nats per action, to minimize
    residual_mass: Tensor  # mean of 1 - B, the weight that is not the action's own


def likelihood_loss(
    *,
    logprobs_NV: Tensor,
    actions_N: Tensor,
    targets_N: Tensor,
    choices_NV: Tensor,
    dummy: int | None,
) -> LikelihoodLoss:
    """As much likelihood for an action as it is worth; the rest elsewhere.

        L = -mean(B log p(a|s) + (1 - B) rest(s))
        rest = sum_{a' in A(s), a' != a} log p(a'|s) / (|A(s)| - 1)   spread (Eq. 3)
        rest = log p(d|s)                                             on a dummy action d (Sec. 4.1)

    Hong et al. 2024, Eq. 3, negated. It is least where the action's probability is
    π_β(a|s) B (on the dummy), or that and a share of what the other actions leave (spread).
    Where no other action is open, the spread rest is 0.

    Args:
        logprobs_NV: log p in N states, nats, fp32.
        actions_N: int64, the data's actions.
        targets_N: B in [0, 1], the value of each action, without gradient.
        choices_NV: bool, the set A(s); holds the action. Only the spread rest uses it.
        dummy: id of an action that no data hold, or None to spread the rest.

    Raises:
        ValueError: a wrong shape or dtype, no state, a target outside [0, 1], an action that
            is none of the choices, or that is the dummy.
    """
    require_axes("NV", logprobs_NV=logprobs_NV)
    require_axes("N", actions_N=actions_N, targets_N=targets_N)
    require_one_shape(logprobs_NV=logprobs_NV, choices_NV=choices_NV)
    require_one_shape(actions_N=actions_N, targets_N=targets_N)
    require_float32(logprobs_NV=logprobs_NV, targets_N=targets_N)
    require_constant(targets_N=targets_N)
    if len(actions_N) == 0 or len(actions_N) != len(logprobs_NV):
        raise ValueError(f"expected one action per state, got {len(actions_N)} actions")
    if not bool(((targets_N >= 0) & (targets_N <= 1)).all()):
        raise ValueError(f"targets_N: expected 0 to 1, got {targets_N}")
    chosen_N1 = actions_N[:, None]
    own_N = logprobs_NV.gather(1, chosen_N1).squeeze(1)
    if dummy is None:
        if not bool(choices_NV.gather(1, chosen_N1).all()):
            raise ValueError("actions_N: an action is none of choices_NV")
        # Left out, not multiplied by 0: an action that cannot be taken has log-prob -1e9.
        others_NV = choices_NV.scatter(1, chosen_N1, False)
        count_N = others_NV.sum(1).clamp(min=1)
        rest_N = torch.where(others_NV, logprobs_NV, 0.0).sum(1) / count_N
    else:
        if bool((actions_N == dummy).any()):
            raise ValueError(f"actions_N: {dummy} is the dummy action, which no data may hold")
        rest_N = logprobs_NV[:, dummy]
    loss = -(targets_N * own_N + (1 - targets_N) * rest_N).mean()
    return LikelihoodLoss(loss, residual_mass=(1 - targets_N).mean())
