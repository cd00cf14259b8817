"""A bandit whose right answer is seen: the image is bright in one of four corners."""

from dataclasses import replace

import numpy as np

from forethought.environments.bandit import LETTERS, Bandit
from forethought.types import Observation

SIDE = 36


class Corners(Bandit):
    """One step; reward 1 for the letter of the bright corner."""

    def __init__(self) -> None:
        super().__init__(arms=4)

    def observation(self) -> Observation:
        """An image, and a word that does not help."""
        row, column = divmod(LETTERS.index(self._letter), 2)
        image = np.zeros((SIDE, SIDE, 3), dtype=np.uint8)
        half = SIDE // 2
        image[row * half : (row + 1) * half, column * half : (column + 1) * half] = 255
        return replace(super().observation(), text="look", image=image)
