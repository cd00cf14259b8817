"""How a number is distributed over very many episodes or steps."""

from array import array
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Distribution(NamedTuple):
    """Values that occur, and how often; sorted, each value once."""

    values_K: NDArray[np.float64]
    counts_K: NDArray[np.int64]
    """Above 0."""

    @property
    def total(self) -> int:
        """How many numbers there are."""
        return int(self.counts_K.sum())

    @property
    def mean(self) -> float:
        """NaN where there is no number."""
        return float(self.values_K @ self.counts_K) / self.total if self.total else float("nan")

    @property
    def lowest(self) -> float:
        return float(self.values_K[0])

    @property
    def highest(self) -> float:
        return float(self.values_K[-1])

    def quantile(self, share: float) -> float:
        """The smallest value that at least this share of the numbers does not exceed.

        Args:
            share: in (0, 1].
        """
        reached_K = np.cumsum(self.counts_K) >= share * self.total
        return float(self.values_K[int(np.argmax(reached_K))])


class Numbers:
    """Numbers that are counted one by one, in 8 bytes each."""

    def __init__(self) -> None:
        self._numbers = array("d")

    def add(self, number: float) -> None:
        """Counts one more."""
        self._numbers.append(number)

    def numpy(self) -> NDArray[np.float64]:
        """All of them, in the order in which they were counted."""
        return np.array(self._numbers, dtype=np.float64)

    def distribution(self) -> Distribution:
        """Sorted and counted."""
        values_K, counts_K = np.unique(self.numpy(), return_counts=True)
        return Distribution(values_K, counts_K.astype(np.int64))
