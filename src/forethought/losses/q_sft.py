"""Q-SFT: probabilities that learn to be values, and values out of probabilities."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.losses.elements import (
    require_axes,
    require_constant,
    require_float32,
    require_one_shape,
)


class LikelihoodLoss(NamedTuple):
    """Q-SFT's loss, with its statistics, which carry no gradient."""

    loss: Tensor  # scalar, nats per action, to minimize
    residual_mass: Tensor  # mean of 1 - B, the weight that is not the action's own


def likelihood_loss(
    *,
    logprobs_NV: Tensor,
    actions_N: Tensor,
    targets_N: Tensor,
    choices_NV: Tensor,
    residual: int | None,
) -> LikelihoodLoss:
    """As much likelihood for an action as it is worth; the rest elsewhere.

        L = -mean(B log p(a|s) + (1 - B) rest(s))
        rest = sum_{a' in A(s), a' != a} log p(a'|s) / (|A(s)| - 1)   spread (Eq. 3)
        rest = log p(d|s)                                             on a residual d (Sec. 4.1)

    Hong et al. 2024, Eq. 3, negated. It is least where the action's probability is
    π_β(a|s) B (on the residual token), or that and a share of what other actions leave (spread).
    Where no other action is open, the spread rest is 0.

    Args:
        logprobs_NV: log p in N states, nats, fp32.
        actions_N: int64, the data's actions.
        targets_N: B in [0, 1], the value of each action, without gradient.
        choices_NV: bool, the set A(s); holds the action. Only the spread rest uses it.
        residual: id of an action that no data hold, or None to spread the rest.

    Raises:
        ValueError: a wrong shape or dtype, no state, a target outside [0, 1], an action that
            is none of the choices, or that is the residual token.
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
    if residual is None:
        if not bool(choices_NV.gather(1, chosen_N1).all()):
            raise ValueError("actions_N: an action is none of choices_NV")
        # Left out, not multiplied by 0: an action that cannot be taken has log-prob -1e9.
        others_NV = choices_NV.scatter(1, chosen_N1, False)
        count_N = others_NV.sum(1).clamp(min=1)
        rest_N = torch.where(others_NV, logprobs_NV, 0.0).sum(1) / count_N
    else:
        if bool((actions_N == residual).any()):
            raise ValueError(f"actions_N: {residual} is the residual token, which no data may hold")
        rest_N = logprobs_NV[:, residual]
    loss = -(targets_N * own_N + (1 - targets_N) * rest_N).mean()
    return LikelihoodLoss(loss, residual_mass=(1 - targets_N).mean())


def support_mask(
    *, logprobs_NV: Tensor, top_p: float, min_probability: float, residual: int | None = None
) -> Tensor:
    """Actions that the behavior policy takes often enough for its data to say what they bring.

        S(s) = {a : π(a|s) >= min_probability} ∩ nucleus(s) ∪ {argmax π(.|s)}

    The residual token is no action: it is never in S, and never the argmax.
    The nucleus is the smallest set of most likely actions with at least `top_p` of the mass
    (Holtzman et al. 2020). Q-SFT's public code keeps what is more likely than 1e-4.

    Args:
        logprobs_NV: of the behavior policy in N states, nats, fp32.
        top_p: in (0, 1]; 1 keeps the whole mass.
        min_probability: in [0, 1).
        residual: id of an action that stands for what no action is worth, if there is one. A
            model that has not learned yet holds it as likely as any, p_θ more so.

    Returns:
        bool [N, V], at least one True per row.

    Raises:
        ValueError: a wrong shape or dtype, or a bound outside its range.
    """
    require_axes("NV", logprobs_NV=logprobs_NV)
    require_float32(logprobs_NV=logprobs_NV)
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p: expected above 0, at most 1, got {top_p}")
    if not 0 <= min_probability < 1:
        raise ValueError(f"min_probability: expected 0 up to 1, got {min_probability}")
    if residual is not None:
        logprobs_NV = logprobs_NV.index_fill(
            -1, torch.tensor([residual], device=logprobs_NV.device), -math.inf
        )
    # Above -inf: what is ruled out is finite, the residual token is not.
    support_NV = logprobs_NV > -math.inf
    if min_probability > 0:
        support_NV &= logprobs_NV >= math.log(min_probability)
    if top_p < 1:
        support_NV &= _nucleus(logprobs_NV, top_p, min_probability)
    return support_NV.scatter(-1, logprobs_NV.argmax(-1, keepdim=True), True)


def _nucleus(logprobs_NV: Tensor, top_p: float, min_probability: float) -> Tensor:
    """The smallest set of most likely actions with so much mass."""
    # No more than 1/m actions are as likely as m: the others need not be sorted.
    size = logprobs_NV.shape[-1]
    count = min(size, math.ceil(1 / min_probability)) if min_probability > 0 else size
    sorted_NK, order_NK = logprobs_NV.topk(count, dim=-1)
    mass_NK = sorted_NK.exp()
    before_NK = mass_NK.cumsum(-1) - mass_NK
    inside_NV = torch.zeros_like(logprobs_NV, dtype=torch.bool)
    return inside_NV.scatter(-1, order_NK, before_NK < top_p)


def likelihood_ratios(
    *,
    likelihood_logprobs_NV: Tensor,
    behavior_logprobs_NV: Tensor,
    support_NV: Tensor,
    floor: float,
) -> Tensor:
    """What Q-SFT's probabilities say that actions are worth.

        Q(s, a) = p(a|s) / max(π(a|s), floor)   for a in S(s),   0 elsewhere

    With the residual mass on a residual token p = π Q* at the optimum (Hong et al. 2024,
    Sec. 4.1), so that the ratio is Q*. It is not bounded here.

    Args:
        likelihood_logprobs_NV: log p, nats, fp32.
        behavior_logprobs_NV: log π, nats, fp32.
        support_NV: bool, from `support_mask`.
        floor: above 0: a learned denominator near 0 says nothing.

    Returns:
        [N, V], 0 or more.

    Raises:
        ValueError: shapes differ, a wrong dtype, or no positive floor.
    """
    require_one_shape(
        likelihood_logprobs_NV=likelihood_logprobs_NV,
        behavior_logprobs_NV=behavior_logprobs_NV,
        support_NV=support_NV,
    )
    require_float32(
        likelihood_logprobs_NV=likelihood_logprobs_NV, behavior_logprobs_NV=behavior_logprobs_NV
    )
    if not 0 < floor <= 1:
        raise ValueError(f"floor: expected above 0, at most 1, got {floor}")
    floored_NV = behavior_logprobs_NV.clamp(min=math.log(floor))
    return (likelihood_logprobs_NV - floored_NV).exp().masked_fill(~support_NV, 0.0)
