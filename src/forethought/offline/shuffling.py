"""Which examples an update learns from, in runs that pass over stored data."""

from collections.abc import Sequence

import numpy as np


def shuffled_batch(
    *, seeds: Sequence[int], examples: int, batch_size: int, number: int
) -> list[int]:
    """Indices of the examples of the n-th update: each epoch shuffles anew.

    A function of the seeds alone, so a resumed run sees what it would have seen. A batch may
    span two epochs.

    Args:
        seeds: of the shuffling; the epoch's number is added to them.
        examples: how many there are, 1 or more.
        number: n, from 0.
    """
    first = number * batch_size
    positions = range(first, first + batch_size)
    shuffled = {
        epoch: np.random.default_rng([*seeds, epoch]).permutation(examples)
        for epoch in {position // examples for position in positions}
    }
    return [int(shuffled[p // examples][p % examples]) for p in positions]
