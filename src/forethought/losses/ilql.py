"""Regression of values to data alone: ILQL's three terms."""

from typing import NamedTuple

import torch
from torch import Tensor

from forethought.losses.elements import (
    require_axes,
    require_constant,
    require_float32,
    require_one_shape,
)


class DoubleQLoss(NamedTuple):
    """The loss of two Q functions, and how far they are apart."""

    loss: Tensor  # scalar, to minimize, in squared units of return
    gap: Tensor  # mean |Q1 - Q2|, in units of return


def double_q_loss(*, first_N: Tensor, second_N: Tensor, targets_N: Tensor) -> DoubleQLoss:
    """Both Q functions towards one target.

        L = mean((Q1(s, a) - y)² + (Q2(s, a) - y)²)

    Snell et al. 2023 (ILQL), L_Q; two of them after Fujimoto et al. 2018.

    Args:
        first_N: Q1 of the data's actions, in units of return, fp32.
        second_N: Q2, likewise.
        targets_N: y, without gradient.

    Raises:
        ValueError: shapes differ, a wrong dtype, a target with gradient, or no action.
    """
    _require(first_N=first_N, second_N=second_N, targets_N=targets_N)
    require_constant(targets_N=targets_N)
    errors_N = (first_N - targets_N).square() + (second_N - targets_N).square()
    return DoubleQLoss(errors_N.mean(), (first_N - second_N).detach().abs().mean())


def expectile_loss(*, values_N: Tensor, targets_N: Tensor, expectile: float) -> Tensor:
    """Values that lie above the mean of what they are fitted to.

        L = mean(|τ - 1{y < V}| (y - V)²)

    Kostrikov et al. 2022 (IQL), Eq. 5; ILQL takes y = min(Q̄1, Q̄2)(s, a) of the data's actions.
    τ = 0.5 is half the squared error; as τ goes to 1, V goes to the highest y.

    Args:
        values_N: V, in units of return, fp32.
        targets_N: y, without gradient.
        expectile: τ, between 0 and 1.

    Returns:
        A scalar, in squared units of return.

    Raises:
        ValueError: as `double_q_loss`; or τ out of range.
    """
    _require(values_N=values_N, targets_N=targets_N)
    require_constant(targets_N=targets_N)
    if not 0 < expectile < 1:
        raise ValueError(f"expectile: expected between 0 and 1, got {expectile}")
    weights_N = torch.where(targets_N < values_N, 1 - expectile, expectile)
    return (weights_N * (targets_N - values_N).square()).mean()


def conservative_loss(*, q_NV: Tensor, actions_N: Tensor) -> Tensor:
    """Q of what the data do, above Q of what they do not.

        L = mean(log Σ_a exp Q(s, a) - Q(s, a_data))

    Kumar et al. 2020 (CQL), Eq. 4; with tokens for actions it is the cross-entropy of softmax(Q),
    as in ILQL. Never negative.

    Args:
        q_NV: in units of return, fp32.
        actions_N: int64, the data's actions.

    Returns:
        A scalar, in units of return.

    Raises:
        ValueError: a wrong shape or dtype, or no action.
    """
    require_axes("NV", q_NV=q_NV)
    require_float32(q_NV=q_NV)
    if len(actions_N) == 0 or actions_N.shape != q_NV.shape[:1]:
        raise ValueError(f"expected one action per state, got {list(actions_N.shape)}")
    return (q_NV.logsumexp(1) - q_NV.gather(1, actions_N[:, None]).squeeze(1)).mean()


def _require(**numbers: Tensor) -> None:
    require_axes("N", **numbers)
    require_one_shape(**numbers)
    require_float32(**numbers)
    if any(len(one) == 0 for one in numbers.values()):
        raise ValueError("expected actions, got none")
