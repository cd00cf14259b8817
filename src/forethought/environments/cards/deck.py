"""Playing cards: ranks, suits, and how they are drawn from an endless deck."""

from typing import NamedTuple

import numpy as np

RANK_NAMES = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")
SUIT_NAMES = ("hearts", "spades", "diamonds", "clubs")

ACE, TEN, KING = 1, 10, 13


class Card(NamedTuple):
    """One card. Cards are drawn with replacement, so equal cards may meet."""

    rank: int
    """1 (ace) to 13 (king)."""
    suit: int
    """Index into `SUIT_NAMES`; it never matters to the rules."""

    @property
    def name(self) -> str:
        return RANK_NAMES[self.rank - 1]

    @property
    def points(self) -> int:
        """The rank, with J, Q and K counting 10."""
        return min(self.rank, TEN)


def draw_card(random: np.random.Generator, *, low: int = ACE, high: int = KING) -> Card:
    """A card of a uniformly random rank in [low, high] and a uniformly random suit."""
    suits = len(SUIT_NAMES)
    number = int(random.integers(low * suits, (high + 1) * suits))
    return Card(number // suits, number % suits)
