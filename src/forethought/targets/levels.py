"""Episodes told apart by what they brought: the best of them, and ranks to ask a model for."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_DIGITS = 9
"""Returns that differ by less are rounded differently, not different."""


def best_episodes(returns: Sequence[float], *, fraction: float) -> list[int]:
    """Which episodes have the highest returns: what filtered imitation learns from.

    Args:
        returns: of each episode.
        fraction: of them that is kept, in (0, 1]; at least one. Of equal ones the earlier.

    Returns:
        Their numbers, rising.

    Raises:
        ValueError: no episode, or a fraction outside (0, 1].
    """
    if not returns:
        raise ValueError("expected episodes, got none")
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction: expected above 0, at most 1, got {fraction}")
    count = max(1, round(fraction * len(returns)))
    ranked = np.argsort(-np.round(np.asarray(returns), _DIGITS), kind="stable")
    return sorted(ranked[:count].tolist())


def return_bins(
    returns_to_go: Sequence[NDArray[np.float64]], *, levels: int
) -> list[tuple[int, ...]]:
    """How well each episode went on from each of its steps, among those that came so far.

        level = min(K, 1 + floor(K x)),   x = b / max b

    b is the share of the episodes with a step t whose return from t on is lower, K the number
    of levels. The best return has level K at every step, whatever the world's rewards are: a
    policy that is asked for K all the time is never asked for what the data do not hold.
    Decision Transformer (Chen et al. 2021) tells the return itself, and subtracts each reward.

    Args:
        returns_to_go: of each episode, [T], in any unit.
        levels: K, 2 or more.

    Returns:
        Of each episode and step, 1 to K; K where all returns are equal.

    Raises:
        ValueError: fewer than two levels.
    """
    if levels < 2:
        raise ValueError(f"levels: expected 2 or more, got {levels}")
    rounded = [np.round(returns_T, _DIGITS).tolist() for returns_T in returns_to_go]
    by_step: defaultdict[int, list[float]] = defaultdict(list)
    for returns in rounded:
        for step, value in enumerate(returns):
            by_step[step].append(value)
    ranked = {step: np.sort(values) for step, values in by_step.items()}

    def level(step: int, value: float) -> int:
        others = ranked[step]
        lower, lower_than_best = np.searchsorted(others, [value, others[-1]], side="left").tolist()
        # Whole numbers: a quotient could fall short of the level that it is.
        return min(levels, 1 + levels * lower // lower_than_best) if lower_than_best else levels

    return [tuple(level(step, one) for step, one in enumerate(returns)) for returns in rounded]
