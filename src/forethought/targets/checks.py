"""The door of every target: what is refused before anything is computed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]
"""Numbers per step: float32 or float64, which `require_series` checks."""


def require_series(**arrays: FloatArray) -> None:
    """Refuses arrays that do not hold one finite number per step of the same steps.

    Raises:
        ValueError: not [T] with T > 0, lengths differ, neither float32 nor float64,
            or a number that is not finite.
    """
    for name, array in arrays.items():
        if array.ndim != 1 or array.size == 0:
            raise ValueError(f"{name}: expected [T] with T > 0, got shape {list(array.shape)}")
        if array.dtype.name not in ("float32", "float64"):
            raise ValueError(f"{name}: expected float32 or float64, got {array.dtype}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name}: expected finite numbers, got {array}")
    if len({array.size for array in arrays.values()}) > 1:
        got = ", ".join(f"{name} [{array.size}]" for name, array in arrays.items())
        raise ValueError(f"expected one length, got {got}")


def require_fraction(**numbers: float) -> None:
    """Refuses a discount, or a weight like one, outside [0, 1].

    Raises:
        ValueError: outside [0, 1].
    """
    for name, number in numbers.items():
        if not 0 <= number <= 1:
            raise ValueError(f"{name}: expected 0 to 1, got {number}")


def require_group(*, returns_N: FloatArray) -> None:
    """Refuses what cannot be compared: a group needs at least two episodes.

    Raises:
        ValueError: fewer than two, or what `require_series` refuses.
    """
    require_series(returns_N=returns_N)
    if returns_N.size < 2:
        raise ValueError("returns_N: expected a group of at least 2 episodes, got 1")
