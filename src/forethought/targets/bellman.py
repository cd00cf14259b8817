"""Bellman targets that are probabilities (Q-SFT)."""

from typing import NamedTuple

import torch
from torch import Tensor

from forethought.losses.checks import require_axes, require_float32, require_one_shape

_ROUNDING = 1e-5
"""What lies so little outside [0, 1] was not clipped, but rounded."""


class BellmanTargets(NamedTuple):
    targets_N: Tensor  # B, in [0, 1], float32
    clipped_low: Tensor  # share of targets that were below 0
    clipped_high: Tensor  # share of targets that were above 1


def utterance_values(
    *,
    other_values_N: Tensor,
    own_values_N: Tensor,
    is_supported_N: Tensor,
    rewards_N: Tensor,
    discounts_N: Tensor,
    is_inside_N: Tensor,
) -> Tensor:
    """Values of the states within answers, from the ends of the answers back to their beginnings.

        V(s_n) = max(max_{a in S, a != a_n} Q(s_n, a), r_n + d_n V(s_n+1))   inside an answer
        V(s_n) = max(max_{a in S, a != a_n} Q(s_n, a), Q(s_n, a_n))          at its last token

    with Q(s, a) = p(a|s) / π(a|s), both asked about the *same* state (Hong et al. 2024, Sec. 4.1;
    the public code takes π one state earlier). Where no token counts as inside, this is the
    paper's V(s) = max_{a in S} p(a|s) / π(a|s).

    Inside an answer the next state is known for sure: it is this one with the token behind it.
    So Q(s_n, a_n) = r_n + d_n V(s_n+1) needs no estimate by p/π, and what the world said about
    the last token reaches the first one at once, not one token per turn of the slow copy. Where
    p/π is Q*, nothing changes. Ours, not the paper's.

    Args:
        other_values_N: the best supported action but the data's own, 0 where there is none.
        own_values_N: p/π of the data's own action.
        is_supported_N: bool, whether that lies in S.
        rewards_N: mapped, as `bellman_targets`.
        discounts_N: as `bellman_targets`.
        is_inside_N: bool, False at the last token of an answer.

    Returns:
        [N], 0 or more, not bounded above.

    Raises:
        ValueError: shapes differ, or a wrong dtype.
    """
    require_axes("N", other_values_N=other_values_N)
    require_one_shape(
        other_values_N=other_values_N,
        own_values_N=own_values_N,
        is_supported_N=is_supported_N,
        rewards_N=rewards_N,
        discounts_N=discounts_N,
        is_inside_N=is_inside_N,
    )
    require_float32(other_values_N=other_values_N, own_values_N=own_values_N)
    values = own_values_N.tolist()
    columns = (other_values_N, is_supported_N, rewards_N, discounts_N, is_inside_N)
    steps = list(zip(*(column.tolist() for column in columns), strict=True))
    for n in reversed(range(len(values))):
        other, is_supported, reward, discount, is_inside = steps[n]
        own = reward + discount * min(values[n + 1], 1.0) if is_inside else values[n]
        values[n] = max(other, own if is_supported else 0.0, 0.0)
    return torch.tensor(values, dtype=torch.float32)


def bellman_targets(
    *, rewards_N: Tensor, discounts_N: Tensor, next_values_N: Tensor
) -> BellmanTargets:
    """The likelihood that each action should have, were it always taken.

        B = clip(r + d V(s'), 0, 1)

    Hong et al. 2024, Sec. 4.1, with the clip that makes it a probability. The discount d of a
    transition is γ, 1 within an utterance that is not discounted, and 0 exactly where the
    world terminated; a truncated action's value goes on in V(s').

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
