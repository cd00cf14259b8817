"""The door of every loss: what is refused before anything is computed."""

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
