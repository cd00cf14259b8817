"""How much each action of the data counts when a policy imitates the better ones."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.losses.checks import require_axes, require_float32


class AdvantageWeights(NamedTuple):
    """Of U actions."""

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
