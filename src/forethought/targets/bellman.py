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
