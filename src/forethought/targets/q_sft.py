"""Q-SFT's values and targets: V of a state by p/π, and the probability each action should get."""

from math import exp, inf
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.losses.elements import (
    require_axes,
    require_constant,
    require_float32,
    require_one_shape,
)
from forethought.losses.q_sft import likelihood_ratios


class LocalValues(NamedTuple):
    """Values of N states on the way of the data: the data's own action, and all others together."""

    own_N: Tensor  # p/π of the data's action
    own_logprobs_N: Tensor  # log π of it; minus infinity outside the support
    others_N: Tensor  # of the supported others: the best, or the mean by their weights; else 0
    others_logweights_N: Tensor  # log of those weights' sum; minus infinity where there is none


def local_values(
    *,
    likelihood_logprobs_NV: Tensor,
    behavior_logprobs_NV: Tensor,
    support_NV: Tensor,
    actions_N: Tensor,
    floor: float,
    beta: float | None,
) -> LocalValues:
    """Looks at each state by itself.

        Q(s, a) = p(a|s) / max(π(a|s), floor)   for a in S(s)
        weight(a) = π(a|s) exp(β clip(Q(s, a), 0, 1)),   or of the best action alone (β None)

    Both models are asked about the *same* state (Hong et al. 2024, Sec. 4.1); the public code
    takes π one state earlier.

    Args:
        likelihood_logprobs_NV: log p of the slowly moving copy, nats, fp32, no gradient.
        behavior_logprobs_NV: log π, nats, fp32, no gradient.
        support_NV: bool, from `support_mask`.
        actions_N: the data's actions, int64.
        floor: above 0.
        beta: None for the best action.

    Raises:
        ValueError: shapes differ, a wrong dtype, or a gradient.
    """
    require_constant(
        likelihood_logprobs_NV=likelihood_logprobs_NV, behavior_logprobs_NV=behavior_logprobs_NV
    )
    ratios_NV = likelihood_ratios(
        likelihood_logprobs_NV=likelihood_logprobs_NV,
        behavior_logprobs_NV=behavior_logprobs_NV,
        support_NV=support_NV,
        floor=floor,
    )
    own_N1 = actions_N[:, None]
    others_NV = support_NV.scatter(1, own_N1, False)
    logweights_NV = behavior_logprobs_NV.masked_fill(~others_NV, -inf)
    if beta is None:
        others_N = ratios_NV.masked_fill(~others_NV, 0.0).amax(1)
    else:
        ratios_NV = ratios_NV.clamp(max=1.0)
        logweights_NV = logweights_NV + beta * ratios_NV
        # Where there is no other, every weight is 0 / 0.
        shares_NV = torch.softmax(logweights_NV, -1).nan_to_num()
        others_N = (shares_NV * ratios_NV).sum(1)
    own_logprobs_NV = behavior_logprobs_NV.masked_fill(~support_NV, -inf)
    return LocalValues(
        own_N=ratios_NV.gather(1, own_N1).squeeze(1),
        own_logprobs_N=own_logprobs_NV.gather(1, own_N1).squeeze(1),
        others_N=others_N,
        others_logweights_N=logweights_NV.logsumexp(1),
    )


def values_along(
    local: LocalValues,
    *,
    rewards_N: Tensor,
    discounts_N: Tensor,
    is_inside_N: Tensor,
    beta: float | None,
) -> Tensor:
    """Values of an episode's states, from the ends of its responses back to their beginnings.

        V(s) = max_{a in S} Q(s, a)                                        β None: Sec. 4.1
        V(s) = sum_{a in S} weight(a) Q(s, a) / sum_{a in S} weight(a)     β: what π^ would get

    where, inside a response, Q(s_n, a_n) = r_n + d_n V(s_n+1) for the data's own token: there the
    next state is known for sure, it is this one with the token behind it, so that no estimate by
    p/π is needed, and what the environment said about the last token reaches the first one at once.
    Where p/π is the value, that changes nothing. Where no token counts as inside, and with the
    best action, it is the paper's.

    Args:
        rewards_N: mapped, as `bellman_targets`.
        discounts_N: as `bellman_targets`.
        is_inside_N: bool, False at the last token of a response.
        beta: as for `local_values`.

    Returns:
        [N], 0 or more, not bounded above.

    Raises:
        ValueError: shapes differ, or the last token counts as inside.
    """
    columns = (*local, rewards_N, discounts_N, is_inside_N)
    require_axes("N", rewards_N=rewards_N)
    names = (*LocalValues._fields, "rewards_N", "discounts_N", "is_inside_N")
    require_one_shape(**dict(zip(names, columns, strict=True)))
    if len(is_inside_N) and bool(is_inside_N[-1]):
        raise ValueError("is_inside_N: the last token of an episode is the last of its answer")
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    values = [0.0] * len(rows)
    for n in reversed(range(len(rows))):
        own, own_logprob, others, others_logweight, reward, discount, is_inside = rows[n]
        if is_inside:
            own = max(reward + discount * min(values[n + 1], 1.0), 0.0)
        values[n] = _mixed(own, own_logprob, others, others_logweight, beta)
    return torch.tensor(values, dtype=torch.float32)


def _mixed(
    own: float, own_logprob: float, others: float, others_logweight: float, beta: float | None
) -> float:
    """The state's value from the data's own action and all others."""
    if own_logprob == -inf:
        return others
    if beta is None:
        return max(own, others)
    own = min(own, 1.0)
    difference = others_logweight - own_logprob - beta * own
    # The share of the own action, written so that nothing overflows.
    share = (
        1 / (1 + exp(difference)) if difference < 0 else exp(-difference) / (1 + exp(-difference))
    )
    return share * own + (1 - share) * others


_ROUNDING = 1e-5
"""What lies so little outside [0, 1] was not clipped, but rounded."""


class BellmanTargets(NamedTuple):
    """Targets of p_θ, and how many of them were cut to [0, 1]."""

    targets_N: Tensor  # B, in [0, 1], float32
    clipped_low: Tensor  # share of targets that were below 0
    clipped_high: Tensor  # share of targets that were above 1


def bellman_targets(
    *, rewards_N: Tensor, discounts_N: Tensor, next_values_N: Tensor
) -> BellmanTargets:
    """The likelihood that each action should have, were it always taken.

        B = clip(r + d V(s'), 0, 1)

    Hong et al. 2024, Sec. 4.1, with the clip that makes it a probability. The discount d of a
    transition is γ, 1 within an utterance that is not discounted, and 0 exactly where the
    environment terminated; a truncated action's value goes on in V(s').

    Args:
        rewards_N: mapped by a `RewardMap`, float32.
        discounts_N: in [0, 1], float32.
        next_values_N: V(s'), float32; anything where the discount is 0.

    Raises:
        ValueError: shapes differ, a wrong dtype, a discount outside [0, 1], or a value that
            counts and is not finite.
    """
    require_axes("N", rewards_N=rewards_N, discounts_N=discounts_N, next_values_N=next_values_N)
    require_one_shape(rewards_N=rewards_N, discounts_N=discounts_N, next_values_N=next_values_N)
    require_float32(rewards_N=rewards_N, discounts_N=discounts_N, next_values_N=next_values_N)
    if not bool(((discounts_N >= 0) & (discounts_N <= 1)).all()):
        raise ValueError(f"discounts_N: expected 0 to 1, got {discounts_N}")
    # Left out, not multiplied by 0: after the end there is no state to have a value.
    following_N = torch.where(discounts_N > 0, discounts_N * next_values_N, 0.0)
    backup_N = rewards_N + following_N
    if not bool(backup_N.isfinite().all()):
        raise ValueError(f"expected finite rewards and values, got {backup_N}")
    return BellmanTargets(
        targets_N=backup_N.clamp(0.0, 1.0),
        clipped_low=(backup_N < -_ROUNDING).float().mean(),
        clipped_high=(backup_N > 1 + _ROUNDING).float().mean(),
    )
