"""Mean over the elements that count."""

import torch
from torch import Tensor

from forethought.losses.checks import checked_mask


def masked_mean(*, values: Tensor, mask: Tensor | None) -> Tensor:
    """Mean over elements, whatever row they stand in; never a mean of row means.

        mean = sum_i m_i v_i / sum_i m_i

    Masked elements may hold anything, infinities and NaN included: they are left
    out, not multiplied by zero, and the gradient with respect to them is zero.

    Micro-batches that are accumulated give the gradient of the whole batch when
    each one's mean is multiplied by its share of the elements that count:

        mean = sum_k (n_k / n) mean_k,   n = sum_k n_k

    Args:
        values: any shape.
        mask: bool of the same shape, True where the element counts; None: all do.

    Returns:
        A scalar in the unit of `values`.

    Raises:
        ValueError: the mask is not bool, has another shape, or keeps nothing.
    """
    mask = checked_mask(mask, like=values)
    return torch.where(mask, values, 0.0).sum() / mask.sum()
