"""REINFORCE++: each episode against the whole batch."""

import numpy as np
from numpy.typing import NDArray

from forethought.targets.checks import FloatArray
from forethought.targets.normalize import normalize_advantages


def batch_normalized_advantages(
    *, returns_N: FloatArray, steps_N: FloatArray
) -> NDArray[np.float64]:
    """How many standard deviations each episode lies above the mean of the batch.

        A_i = (R_i - mean) / (std + ε),   mean = Σ T_i R_i / Σ T_i,
                                          std² = Σ T_i (R_i - mean)² / Σ T_i

    REINFORCE++: Hu et al. 2025 (arXiv 2501.03262), the variant without group baseline,
    on outcomes and without its KL penalty. One mean and one deviation for all starts:
    it needs no groups, but an easy start is praised for being easy. T_i, the number of steps,
    makes the advantage of the batch's *steps*, which the loss averages, 0 in the mean.

    Args:
        returns_N: R, one per episode of the batch, over all processes, any order.
        steps_N: T, steps of each episode, as floats, above 0.

    Returns:
        [N], dimensionless, float64; exactly 0 where all are equal.

    Raises:
        ValueError: a wrong shape or dtype, a number that is not finite, or lengths
            that are negative or all 0.
    """
    return normalize_advantages(returns_N, weights_N=steps_N)
