"""Q-Transformer's loss: values of the tokens that the data hold go to their targets, all others
to 0."""

from typing import NamedTuple

import torch
from torch import Tensor

from forethought.losses.elements import (
    require_axes,
    require_constant,
    require_float32,
    require_one_shape,
)

OFFSET = 4.0
"""Log-odds by which a logit is above its value's: a model that has learned nothing, whose logits
are about 0, says 0.02 of everything, and its best of hundreds of tokens is not far from 0."""


def q_values(logits_NV: Tensor) -> Tensor:
    """Values from 0 to 1 in the order of the logits: Q = 1 / (1 + exp(4 - z)).

    Bounded as the returns are, so no bootstrapped target runs away; the greedy policy of Q is
    the greedy policy of the model's logits.
    """
    return torch.sigmoid(logits_NV - OFFSET)


class QTransformerLoss(NamedTuple):
    loss: Tensor  # scalar, to minimize, in squared units of return
    regression: Tensor  # ½ mean (Q(s, a) - y)², of the data's tokens
    conservative: Tensor  # ½ mean Q(s, a)², of all others


def q_transformer_loss(
    *, q_NV: Tensor, actions_N: Tensor, targets_N: Tensor, conservative_weight: float
) -> QTransformerLoss:
    """Regression of the dimensions that were taken, and a pull to 0 of the bins that were not.

        L = ½ mean_n (Q(s_n, a_n) - y_n)² + α ½ mean_n 1/(V - 1) Σ_{a ≠ a_n} Q(s_n, a)²

    Chebotar et al. 2023, Eq. 2, in which the second term is an expectation under
    π̃ ∝ 1 - π_β; with one action of the data in a state, that is the mean over the others.
    0 is the least return that there can be.

    Args:
        q_NV: Q of all V bins, or tokens, of a dimension; 0 to 1, fp32.
        actions_N: int64, the data's.
        targets_N: y, without gradient.
        conservative_weight: α, 0 or more.

    Raises:
        ValueError: shapes differ, a wrong dtype, a target with gradient, no action, or no other.
    """
    require_axes("NV", q_NV=q_NV)
    require_axes("N", targets_N=targets_N)
    require_float32(q_NV=q_NV, targets_N=targets_N)
    require_constant(targets_N=targets_N)
    if actions_N.shape != targets_N.shape or len(actions_N) != len(q_NV) or len(actions_N) == 0:
        raise ValueError(
            f"expected one action and one target per state, got {list(actions_N.shape)} and "
            f"{list(targets_N.shape)} of {len(q_NV)}"
        )
    if q_NV.shape[1] < 2 or conservative_weight < 0:
        raise ValueError(
            f"expected two bins or more and a weight of 0 or more, got {q_NV.shape[1]} and "
            f"{conservative_weight}"
        )
    taken_N = q_NV.gather(1, actions_N[:, None]).squeeze(1)
    regression = 0.5 * (taken_N - targets_N).square().mean()
    is_other_NV = torch.ones_like(q_NV).scatter(1, actions_N[:, None], 0.0)
    others_N = (q_NV.square() * is_other_NV).sum(1) / (q_NV.shape[1] - 1)
    conservative = 0.5 * others_N.mean()
    loss = regression + conservative_weight * conservative
    return QTransformerLoss(loss, regression.detach(), conservative.detach())


def q_transformer_targets(
    *, rewards_N: Tensor, discounts_N: Tensor, next_best_N: Tensor, returns_N: Tensor
) -> Tensor:
    """What each token of the data is to be worth.

        y = max(r + d max_a Q̄(s', a), G)

    Chebotar et al. 2023, Eq. 1 and section 4.2. Within an action r = 0 and d = 1, and s' is
    the same state with one more dimension of the action; behind its last dimension s' is the
    next step's state, before its first one, and d = γ. G, the return that followed in the data,
    is a lower bound of what the best policy gets.

    Args:
        rewards_N: r, fp32.
        discounts_N: d, 0 to 1; 0 exactly where the environment terminated.
        next_best_N: max_a Q̄(s', a) by the target network, fp32; anything where the discount is 0.
        returns_N: G, fp32.

    Returns:
        [N], without gradient.

    Raises:
        ValueError: shapes differ, a wrong dtype, a discount outside [0, 1], or a target that is
            not finite.
    """
    numbers = {"rewards_N": rewards_N, "discounts_N": discounts_N}
    numbers |= {"next_best_N": next_best_N, "returns_N": returns_N}
    require_axes("N", **numbers)
    require_one_shape(**numbers)
    require_float32(**numbers)
    if not bool(((discounts_N >= 0) & (discounts_N <= 1)).all()):
        raise ValueError(f"discounts_N: expected 0 to 1, got {discounts_N}")
    # Left out, not multiplied by 0: after the end there is no state to have a value.
    following_N = torch.where(discounts_N > 0, discounts_N * next_best_N, 0.0)
    targets_N = torch.maximum(rewards_N + following_N, returns_N)
    if not bool(targets_N.isfinite().all()):
        raise ValueError(f"expected finite rewards, values and returns, got {targets_N}")
    return targets_N.detach()
