"""ILQL and ArCHer: what the Q of a token is to be, and the weights of actions by advantage."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.losses.elements import require_axes, require_float32, require_one_shape


def td_targets(*, rewards_N: Tensor, discounts_N: Tensor, next_values_N: Tensor) -> Tensor:
    """The reward, and what the next state is worth.

        y = r + d V(s')

    ILQL (Snell et al. 2023) with V of its own head; Q-learning with V(s') = max_a Q(s', a). The
    discount d is 0 exactly where the environment terminated.

    Args:
        rewards_N: in units of return, fp32.
        discounts_N: in [0, 1], fp32.
        next_values_N: V(s'), fp32; anything where the discount is 0.

    Returns:
        [N].

    Raises:
        ValueError: shapes differ, a wrong dtype, a discount outside [0, 1], or a target that is
            not finite.
    """
    require_axes("N", next_values_N=next_values_N)
    _require(rewards_N=rewards_N, discounts_N=discounts_N, next_values_N=next_values_N)
    # Left out, not multiplied by 0: after the end there is no state to have a value.
    targets_N = rewards_N + torch.where(discounts_N > 0, discounts_N * next_values_N, 0.0)
    if not bool(targets_N.isfinite().all()):
        raise ValueError(f"expected finite rewards and values, got {targets_N}")
    return targets_N


def monte_carlo_targets(
    *, rewards_N: Tensor, discounts_N: Tensor, last_value: float | None
) -> Tensor:
    """What followed in the data, from each token of one episode on.

        y_n = r_n + d_n y_n+1

    The regression of LMRL-Gym (Abdulhai et al. 2023): no bootstrap, so the value of the policy
    that made the data.

    Args:
        rewards_N: of the episode's tokens in order, in units of return, fp32.
        discounts_N: in [0, 1], fp32; the last one is 0 where the environment terminated.
        last_value: of the state behind the last token, where the environment went on.

    Returns:
        [N].

    Raises:
        ValueError: shapes differ, a wrong dtype, a discount outside [0, 1], or the environment went
            on and nothing is known of it.
    """
    _require(rewards_N=rewards_N, discounts_N=discounts_N)
    if last_value is None and float(discounts_N[-1]) > 0:
        raise ValueError("last_value: expected a number behind an episode that was cut, got None")
    following, targets = last_value or 0.0, [0.0] * len(rewards_N)
    steps = list(zip(rewards_N.tolist(), discounts_N.tolist(), strict=True))
    for n in reversed(range(len(steps))):
        reward, discount = steps[n]
        following = reward + discount * following
        targets[n] = following
    return torch.tensor(targets, dtype=torch.float32)


def _require(*, rewards_N: Tensor, discounts_N: Tensor, **others: Tensor) -> None:
    require_axes("N", rewards_N=rewards_N, discounts_N=discounts_N)
    require_one_shape(rewards_N=rewards_N, discounts_N=discounts_N, **others)
    require_float32(rewards_N=rewards_N, discounts_N=discounts_N, **others)
    if not bool(((discounts_N >= 0) & (discounts_N <= 1)).all()):
        raise ValueError(f"discounts_N: expected 0 to 1, got {discounts_N}")


# Weights of the data's actions in advantage-weighted behavior cloning.


class AdvantageWeights(NamedTuple):
    """Weights of U actions."""

    weights_U: Tensor
    is_capped_U: Tensor
    """Bool: would have been above the cap."""


def advantage_weights(*, advantages_U: Tensor, beta: float, cap: float) -> AdvantageWeights:
    """Exponentials of advantages, cut.

        w = min(exp(β A), c)

    Peng et al. 2019 (AWR), β being the inverse of their temperature. The data's policy times w is
    the best one that stays near it; β = 0 weighs all alike. The cap keeps a few actions from
    being all that is learned from.

    Args:
        advantages_U: Q - V, in units of return, fp32; any scale, never normalized here.
        beta: β, 0 or more, per unit of return.
        cap: c, 1 or more.

    Raises:
        ValueError: a wrong shape or dtype, a number that is not finite, β or c out of range.
    """
    require_axes("U", advantages_U=advantages_U)
    require_float32(advantages_U=advantages_U)
    if not bool(advantages_U.isfinite().all()):
        raise ValueError(f"advantages_U: expected finite numbers, got {advantages_U}")
    if not 0 <= beta < math.inf or cap < 1:
        raise ValueError(f"expected a beta of 0 or more and a cap of 1 or more, got {beta}, {cap}")
    exponents_U = beta * advantages_U
    is_capped_U = exponents_U > math.log(cap)
    return AdvantageWeights(torch.where(is_capped_U, cap, exponents_U.exp()), is_capped_U)


def effective_share(*, count: float, total: float, squares: float) -> float:
    """How many actions count, in effect, as a share of all.

        (Σ w)² / (n Σ w²)

    Kish 1965: 1 where all weigh alike, 1 / n where one has all the weight.

    Args:
        count: n.
        total: Σ w.
        squares: Σ w²; where it is 0 the share is 0.
    """
    return total**2 / (count * squares) if count * squares > 0 else 0.0
