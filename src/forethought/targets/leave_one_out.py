"""RLOO: each episode against the mean of its group's others."""

import numpy as np
from numpy.typing import NDArray

from forethought.targets.checks import FloatArray, require_group


def leave_one_out_advantages(returns_N: FloatArray) -> NDArray[np.float64]:
    """How much better each episode went than the others from the same start.

        A_i = R_i - 1 / (n - 1) Σ_{j ≠ i} R_j

    RLOO: Kool et al. 2019; Ahmadian et al. 2024 (arXiv 2402.14740). The baseline does not
    depend on the episode that it judges, so the gradient is unbiased. Equal to n / (n - 1)
    times the distance from the mean of all: n - 1 others, not n.

    Args:
        returns_N: R, one per episode of *one* group, any order.

    Returns:
        [N], in units of return, float64; sums to 0; exactly 0 where all are equal.

    Raises:
        ValueError: a group of one, which has no others; a wrong shape or dtype, or a
            number that is not finite.
    """
    require_group(returns_N=returns_N)
    if np.ptp(returns_N) == 0:
        return np.zeros(returns_N.size, dtype=np.float64)
    returns_N = returns_N.astype(np.float64)
    others_N = (returns_N.sum() - returns_N) / (returns_N.size - 1)
    return np.asarray(returns_N - others_N, dtype=np.float64)
