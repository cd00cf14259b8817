"""GRPO and Dr. GRPO: each episode against the mean of its group."""

import numpy as np
from numpy.typing import NDArray

from forethought.targets.checks import FloatArray, require_group
from forethought.targets.normalize import normalize_advantages


def group_normalized_advantages(returns_N: FloatArray) -> NDArray[np.float64]:
    """How many standard deviations each episode lies above its group's mean.

        A_i = (R_i - mean(R)) / (std(R) + ε)

    GRPO: Shao et al. 2024 (DeepSeekMath, arXiv 2402.03300), which leaves open which
    standard deviation is meant: here the population's (divided by n), ε as in
    `normalize_advantages`; the sample's would shrink a group of 2 by √2 and a group
    of 8 by 1.07. Groups that nearly all win, or nearly all lose, weigh as much as
    those in between: see `group_centered_advantages`.

    Args:
        returns_N: R, one per episode of *one* group, any order.

    Returns:
        [N], dimensionless, float64; sums to 0; exactly 0 where all are equal.

    Raises:
        ValueError: a group of one, which has no spread; a wrong shape or dtype, or a
            number that is not finite.
    """
    require_group(returns_N=returns_N)
    return normalize_advantages(returns_N)


def group_centered_advantages(returns_N: FloatArray) -> NDArray[np.float64]:
    """How far each episode lies above its group's mean.

        A_i = R_i - mean(R)

    Dr. GRPO: Liu et al. 2025 (arXiv 2503.20783). Without the division a start that is nearly
    always won, or nearly always lost, teaches less than one in between. The mean
    includes the episode itself: (n - 1) / n times `leave_one_out_advantages`.

    Args:
        returns_N: R, one per episode of *one* group, any order.

    Returns:
        [N], in units of return, float64; sums to 0; exactly 0 where all are equal.

    Raises:
        ValueError: a group of one, whose only advantage would always be 0; a wrong
            shape or dtype, or a number that is not finite.
    """
    require_group(returns_N=returns_N)
    if np.ptp(returns_N) == 0:
        return np.zeros(returns_N.size, dtype=np.float64)
    returns_N = returns_N.astype(np.float64)
    return np.asarray(returns_N - returns_N.mean(), dtype=np.float64)
