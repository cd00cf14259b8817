"""Advantages without a critic: episodes against their group, or against the batch."""

import numpy as np
from numpy.typing import NDArray

from forethought.targets.checks import FloatArray, require_group, require_series

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
