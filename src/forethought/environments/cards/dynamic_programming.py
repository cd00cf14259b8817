"""Blackjack solved exactly: endless deck, the dealer draws to 17 and stands on all 17s.

Cards are drawn with replacement, so a hand is described by its total and whether it
holds an ace, and the chances of every end follow by recursion. Two objectives, for
their best policies differ: winning most often, and earning most (a draw counts half
of what it saves). Sutton and Barto 2018, Example 5.1, and Blackjack-v1 of Gymnasium
have these rules.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple

from forethought.environments.cards.drawing import ACE, KING, TEN

Objective = Literal["wins", "return"]

DEALER_STANDS_AT = 17
LIMIT = 21

CHANCES = {
    points: sum(min(rank, TEN) == points for rank in range(ACE, KING + 1)) / KING
    for points in range(ACE, TEN + 1)
}
"""Probability of drawing a card of so many points."""


class Hand(NamedTuple):
    """All that matters about the cards that someone holds."""

    hard: int
    """Sum of the points, aces counting 1."""
    has_ace: bool

    @property
    def is_soft(self) -> bool:
        """An ace counts 11."""
        return self.has_ace and self.hard + 10 <= LIMIT

    @property
    def total(self) -> int:
        """Points, an ace counting 11 where that does not exceed 21."""
        return self.hard + 10 if self.is_soft else self.hard

    @property
    def is_bust(self) -> bool:
        """Whether the hand exceeds 21."""
        return self.hard > LIMIT

    def plus(self, points: int) -> "Hand":
        """The hand with one more card of so many points."""
        return Hand(self.hard + points, self.has_ace or points == ACE)


EMPTY_HAND = Hand(0, False)


class Chances(NamedTuple):
    """How a game may end, as probabilities."""

    win: float
    draw: float
    loss: float

    @property
    def expected_return(self) -> float:
        """Mean reward: win is 1, draw 0, loss -1."""
        return self.win - self.loss


LOST = Chances(0.0, 0.0, 1.0)


class Choice(NamedTuple):
    """The best action in a state, and what it leads to."""

    action: str
    chances: Chances


@lru_cache(maxsize=256)
def dealer_totals(hand: Hand) -> dict[int, float]:
    """Probability of each total that the dealer may end with; 0 means bust."""
    if hand.is_bust:
        return {0: 1.0}
    if hand.total >= DEALER_STANDS_AT:
        return {hand.total: 1.0}
    totals: dict[int, float] = {}
    for points, chance in CHANCES.items():
        for total, probability in dealer_totals(hand.plus(points)).items():
            totals[total] = totals.get(total, 0.0) + chance * probability
    return totals


@lru_cache(maxsize=1024)
def standing(player: Hand, dealer_shows: int) -> Chances:
    """What standing leads to, the dealer's second card being unknown."""
    totals = dealer_totals(EMPTY_HAND.plus(dealer_shows))
    win = sum(chance for total, chance in totals.items() if total < player.total)
    draw = totals.get(player.total, 0.0)
    return Chances(win, draw, 1.0 - win - draw)


def hitting(player: Hand, dealer_shows: int, objective: Objective) -> Chances:
    """What hitting leads to, if all that follows is best."""
    return _mixed(
        (
            chance,
            LOST
            if (after := player.plus(points)).is_bust
            else best_choice(after, dealer_shows, objective).chances,
        )
        for points, chance in CHANCES.items()
    )


@lru_cache(maxsize=2048)
def best_choice(player: Hand, dealer_shows: int, objective: Objective) -> Choice:
    """The best action and its chances; among equals the better return, then standing."""
    return max(
        Choice("stand", standing(player, dealer_shows)),
        Choice("hit", hitting(player, dealer_shows, objective)),
        key=lambda choice: _rank(choice.chances, objective),
    )


@lru_cache(maxsize=2)
def game_chances(objective: Objective) -> Chances:
    """How a game ends under the best policy, before any card is dealt."""
    return _mixed(
        (
            first_chance * second_chance * dealer_chance,
            best_choice(EMPTY_HAND.plus(first).plus(second), shown, objective).chances,
        )
        for first, first_chance in CHANCES.items()
        for second, second_chance in CHANCES.items()
        for shown, dealer_chance in CHANCES.items()
    )


def _rank(chances: Chances, objective: Objective) -> tuple[float, float]:
    """Sorts chances; rounded, so that equal ones do not differ by their last bit."""
    win, expected = round(chances.win, 12), round(chances.expected_return, 12)
    return (win, expected) if objective == "wins" else (expected, win)


def _mixed(weighted: Iterable[tuple[float, Chances]]) -> Chances:
    """The average of chances, each with its probability."""
    win = draw = loss = 0.0
    for weight, chances in weighted:
        win += weight * chances.win
        draw += weight * chances.draw
        loss += weight * chances.loss
    return Chances(win, draw, loss)
