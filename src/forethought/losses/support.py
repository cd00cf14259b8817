"""Values out of probabilities: the ratio of likelihood to behavior, where data say something."""

import math

import torch
from torch import Tensor

from forethought.losses.checks import require_axes, require_float32, require_one_shape


def support_mask(
    *, logprobs_NV: Tensor, top_p: float, min_probability: float, dummy: int | None = None
) -> Tensor:
    """Actions that the behavior policy takes often enough for its data to say what they bring.

        S(s) = {a : π(a|s) >= min_probability} ∩ nucleus(s) ∪ {argmax π(.|s)}

    The dummy is no action: it is never in S, and never the argmax.
    The nucleus is the smallest set of most likely actions with at least `top_p` of the mass
    (Holtzman et al. 2020). Q-SFT's public code keeps what is more likely than 1e-4.

    Args:
        logprobs_NV: of the behavior policy in N states, nats, fp32.
        top_p: in (0, 1]; 1 keeps the whole mass.
        min_probability: in [0, 1).
        dummy: id of an action that stands for what no action is worth, if there is one. A
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
    if dummy is not None:
        logprobs_NV = logprobs_NV.index_fill(
            -1, torch.tensor([dummy], device=logprobs_NV.device), -math.inf
        )
    # Above -inf: what is ruled out is finite, the dummy is not.
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

    With the leftover mass on a dummy action p = π Q* at the optimum (Hong et al. 2024,
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
