"""Clipped value loss, and how much of the returns a critic explains."""

from typing import NamedTuple

import torch
from torch import Tensor

from forethought.losses.aggregation import masked_mean
from forethought.losses.checks import (
    checked_mask,
    require_axes,
    require_constant,
    require_float32,
    require_one_shape,
)


class ValueLoss(NamedTuple):
    loss: Tensor  # scalar, to minimize, in squared units of return
    clip_fraction: Tensor  # share of steps whose value moved by more than clip; 0 without clip
    explained_variance: Tensor  # of these steps alone: do not average it over micro-batches


def clipped_value_loss(
    *,
    values_B: Tensor,
    old_values_B: Tensor,
    returns_B: Tensor,
    clip: float | None,
    mask_B: Tensor | None,
) -> ValueLoss:
    """Squared error of the critic, without reward for moving far in one iteration.

        L = 0.5 mean(max((v - R)², (v_clip - R)²)),   v_clip = v_old + clamp(v - v_old, -c, c)

    Without clip L = 0.5 mean((v - R)²): Schulman et al. 2017, Eq. 9. The clipped form
    is the customary companion of PPO's clipped ratio (Engstrom et al. 2020) and the one
    that RL4VLM uses. A value that moved more than c towards its return has no gradient:
    moving further earns nothing. One that moved away, or far past, is pulled back.

    Args:
        values_B: of the critic being trained, in units of return, fp32.
        old_values_B: of the critic when the steps were taken, fp32, no gradient.
        returns_B: what to predict, fp32, no gradient.
        clip: c > 0 in units of return; None: no clipping.
        mask_B: bool, True where the step counts; None: all do.

    Raises:
        ValueError: not [B], shapes differ, a wrong dtype, data that require gradient,
            c not positive, or no step counts.
    """
    require_axes("B", values_B=values_B)
    require_one_shape(values_B=values_B, old_values_B=old_values_B, returns_B=returns_B)
    require_float32(values_B=values_B, old_values_B=old_values_B, returns_B=returns_B)
    require_constant(old_values_B=old_values_B, returns_B=returns_B)
    if clip is not None and not clip > 0:
        raise ValueError(f"clip: expected more than 0, or None, got {clip}")
    mask_B = checked_mask(mask_B, like=values_B)
    values_B = torch.where(mask_B, values_B, 0.0)  # what is masked may not even be a number
    moved_B = values_B - old_values_B
    squared_error_B = (values_B - returns_B).square()
    if clip is not None:
        clipped_values_B = old_values_B + moved_B.clamp(-clip, clip)
        squared_error_B = torch.maximum(squared_error_B, (clipped_values_B - returns_B).square())
    loss = 0.5 * masked_mean(values=squared_error_B, mask=mask_B)
    with torch.no_grad():
        beyond_B = moved_B.abs() > (torch.inf if clip is None else clip)
        clip_fraction = masked_mean(values=beyond_B.float(), mask=mask_B)
        explained = explained_variance(values_B=values_B, returns_B=returns_B, mask_B=mask_B)
    return ValueLoss(loss, clip_fraction, explained)


def explained_variance(*, values_B: Tensor, returns_B: Tensor, mask_B: Tensor | None) -> Tensor:
    """How much of the returns' variation the critic foresaw.

        1 - Var(R - v) / Var(R)

    1 is a perfect critic up to a constant, 0 one that knows no more than a constant,
    below 0 one that misleads. 0 also where all returns are equal: nothing to explain.

    Args:
        values_B: the critic's, in units of return, fp32.
        returns_B: what came, fp32.
        mask_B: bool, True where the step counts; None: all do.

    Returns:
        A scalar of at most 1, without gradient.

    Raises:
        ValueError: not [B], shapes differ, a wrong dtype, or no step counts.
    """
    require_axes("B", values_B=values_B)
    require_one_shape(values_B=values_B, returns_B=returns_B)
    require_float32(values_B=values_B, returns_B=returns_B)
    mask_B = checked_mask(mask_B, like=values_B)
    returns, values = returns_B[mask_B].detach(), values_B[mask_B].detach()
    if returns.max() == returns.min():
        return torch.zeros_like(returns[0])
    return 1 - (returns - values).var(correction=0) / returns.var(correction=0)
