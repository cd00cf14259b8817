"""Advantages of a whole batch on a common scale."""

import numpy as np
from numpy.typing import NDArray

from forethought.targets.checks import FloatArray, require_series

EPSILON = 1e-8
"""Added to the standard deviation, in units of return: differences far below it are
noise of the arithmetic and stay small instead of being blown up to 1."""


def normalize_advantages(
    advantages_N: FloatArray, *, weights_N: FloatArray | None = None
) -> NDArray[np.float64]:
    """Mean 0 and standard deviation 1, over the whole batch and never per micro-batch.

        (A - mean) / (std + ε),   mean = Σ w A / Σ w,   std² = Σ w (A - mean)² / Σ w

    Where all advantages that weigh anything are equal there is nothing to prefer:
    the result is exactly 0 everywhere. So it is for a batch of one.

    Args:
        advantages_N: of every step of the batch, any trajectories, any order.
        weights_N: how much each counts, at least 0, such as its number of tokens;
            None: all the same.

    Returns:
        [N], dimensionless, float64.

    Raises:
        ValueError: a wrong shape or dtype, a number that is not finite, a negative
            weight, or weights that are all 0.
    """
    if weights_N is None:
        weights_N = np.ones(advantages_N.shape, dtype=np.float64)
    require_series(advantages_N=advantages_N, weights_N=weights_N)
    if weights_N.min() < 0 or weights_N.max() == 0:
        raise ValueError(f"weights_N: expected at least 0 and not all 0, got {weights_N}")
    if np.ptp(advantages_N[weights_N > 0]) == 0:
        return np.zeros(advantages_N.size, dtype=np.float64)
    mean = np.average(advantages_N, weights=weights_N)
    variance = np.average(np.square(advantages_N - mean), weights=weights_N)
    return np.asarray((advantages_N - mean) / (np.sqrt(variance) + EPSILON), dtype=np.float64)
