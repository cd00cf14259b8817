"""Where every loss begins and ends: what is refused before anything is computed, which elements
count, and one number from them."""

from typing import Literal

import torch
from torch import Tensor


def require_one_shape(**tensors: Tensor) -> None:
    """Refuses tensors that do not match element by element; nothing is broadcast.

    Raises:
        ValueError: shapes differ.
    """
    if len({tensor.shape for tensor in tensors.values()}) > 1:
        got = ", ".join(f"{name} {list(tensor.shape)}" for name, tensor in tensors.items())
        raise ValueError(f"expected one shape, got {got}")


def require_axes(axes: str, **tensors: Tensor) -> None:
    """Refuses tensors without exactly these axes, one letter each: `"BT"`.

    Raises:
        ValueError: another number of dimensions.
    """
    for name, tensor in tensors.items():
        if tensor.ndim != len(axes):
            expected = f"[{', '.join(axes)}]"
            raise ValueError(f"{name}: expected {expected}, got shape {list(tensor.shape)}")


def require_float32(**tensors: Tensor) -> None:
    """Refuses any other precision: a bf16 log-prob of -50 is off by up to 0.125, a clip's width.

    Raises:
        ValueError: a tensor is not float32.
    """
    for name, tensor in tensors.items():
        if tensor.dtype != torch.float32:
            raise ValueError(f"{name}: expected float32, got {tensor.dtype}")


def require_constant(**tensors: Tensor) -> None:
    """Refuses data that would carry a gradient back into the model.

    Raises:
        ValueError: a tensor requires gradient.
    """
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            raise ValueError(f"{name}: expected data without gradient, got one that requires it")


def checked_mask(mask: Tensor | None, *, like: Tensor) -> Tensor:
    """The mask to use: True where an element counts. None means that every element does.

    Raises:
        ValueError: not bool, not of `like`'s shape, or no element counts.
    """
    if mask is None:
        mask = torch.ones_like(like, dtype=torch.bool)
    if mask.dtype != torch.bool or mask.shape != like.shape:
        raise ValueError(
            f"mask: expected bool {list(like.shape)}, got {mask.dtype} {list(mask.shape)}"
        )
    if not mask.any():
        raise ValueError("mask: expected at least one element that counts, got none")
    return mask


Aggregation = Literal["token_mean", "sequence_mean", "sequence_sum"]
"""How much a token weighs: as any other, as its share of its response, or 1 in a response's sum."""


def aggregate(*, values_BT: Tensor, mask_BT: Tensor | None, aggregation: Aggregation) -> Tensor:
    """What the tokens of a batch of responses come to.

        token_mean     sum_b sum_t m_bt v_bt / sum_b n_b       n_b = sum_t m_bt
        sequence_mean  1/B sum_b (sum_t m_bt v_bt / n_b)
        sequence_sum   1/B sum_b sum_t m_bt v_bt

    `token_mean` is `masked_mean` (Yu et al. 2025, DAPO, Eq. 8), `sequence_mean` the
    average of GRPO (Shao et al. 2024, Eq. 3), `sequence_sum` that of Dr. GRPO (Liu et
    al. 2025), before any constant. A response of which no token counts adds 0 to the
    latter two, and is one of the B.

    Micro-batches that are accumulated give the whole batch's gradient when each one's
    number is multiplied by its share of what is averaged over: of the tokens that count
    for `token_mean`, of the responses for the other two.

    Args:
        values_BT: per token; what is masked may hold anything.
        mask_BT: bool, True where the token counts; None: all do.
        aggregation: see above.

    Returns:
        A scalar; in the unit of `values_BT`, per response for `sequence_sum`.

    Raises:
        ValueError: not [B, T], the mask does not fit, or no token counts.
    """
    require_axes("BT", values_BT=values_BT)
    mask_BT = checked_mask(mask_BT, like=values_BT)
    if aggregation == "token_mean":
        return masked_mean(values=values_BT, mask=mask_BT)
    sums_B = torch.where(mask_BT, values_BT, 0.0).sum(dim=1)
    if aggregation == "sequence_sum":
        return sums_B.mean()
    return (sums_B / mask_BT.sum(dim=1).clamp(min=1)).mean()


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
