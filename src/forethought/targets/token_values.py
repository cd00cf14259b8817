"""What the Q of a token is to be, in the world's units."""

import torch
from torch import Tensor

from forethought.losses.checks import require_axes, require_float32, require_one_shape


def td_targets(*, rewards_N: Tensor, discounts_N: Tensor, next_values_N: Tensor) -> Tensor:
    """The reward, and what the next state is worth.

        y = r + d V(s')

    ILQL (Snell et al. 2023) with V of its own head; Q-learning with V(s') = max_a Q(s', a). The
    discount d is 0 exactly where the world terminated.

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
        discounts_N: in [0, 1], fp32; the last one is 0 where the world terminated.
        last_value: of the state behind the last token, where the world went on.

    Returns:
        [N].

    Raises:
        ValueError: shapes differ, a wrong dtype, a discount outside [0, 1], or the world went
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
