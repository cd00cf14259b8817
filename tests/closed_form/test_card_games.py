"""What the card games' ceilings and baselines are, each computed twice."""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import pytest

from forethought.environments import make_environment
from forethought.environments.cards.drawing import RANK_NAMES
from forethought.environments.cards.dynamic_programming import (
    CHANCES,
    EMPTY_HAND,
    Chances,
    Hand,
    best_choice,
    dealer_totals,
    game_chances,
)
from forethought.environments.cards.formula_rules import (
    Deals,
    is_dealt,
    partners,
    points24_rules,
    solvable_deals,
)
from forethought.environments.cards.number_line import Position, moved
from forethought.environments.cards.solver import is_solvable, solutions


def test_points24_with_faces_as_ten() -> None:
    """566 of 715 sets of values; weighted by the 13**4 equally likely deals, 73.09 %."""
    solvable = solvable_deals(points24_rules("paper", faces_as_ten=True))
    assert solvable[1:] == (566, 715)
    assert solvable.share == pytest.approx(0.7309267882777, abs=1e-12)
    assert make_environment("Points24").ceiling.success_rate == solvable.share


def test_points24_split() -> None:
    """Every set of values is dealt in one part; solvable ones add up to the whole game's."""
    rules = points24_rules("paper", faces_as_ten=True)
    seen, unseen = solvable_deals(rules, "seen"), solvable_deals(rules, "unseen")
    assert seen[1:] == (466, 593)
    assert unseen[1:] == (100, 122)
    shares = {"seen": _share_of_deals("seen"), "unseen": _share_of_deals("unseen")}
    assert shares["seen"] + shares["unseen"] == pytest.approx(1)
    won = shares["seen"] * seen.share + shares["unseen"] * unseen.share
    assert won == pytest.approx(solvable_deals(rules).share)


def _share_of_deals(deals: Deals) -> float:
    values = [min(rank, 10) for rank in range(1, 14)]
    dealt = sum(is_dealt(tuple(sorted(deal)), deals) for deal in product(values, repeat=4))
    return dealt / 13**4


def test_points24_weights_are_the_share_of_deals_counted_one_by_one() -> None:
    values = [min(rank, 10) for rank in range(1, 14)]
    winnable: dict[tuple[int, ...], bool] = {
        cards: is_solvable(cards, 24) for cards in combinations_with_replacement(range(1, 11), 4)
    }
    won = sum(winnable[tuple(sorted(deal))] for deal in product(values, repeat=4))
    share = solvable_deals(points24_rules("paper", faces_as_ten=True)).share
    assert share == pytest.approx(won / 13**4, abs=1e-12)


def test_points24_with_faces_of_their_own() -> None:
    """1362 of 1820 sets of values, the known count for cards from 1 to 13; 79.18 %."""
    solvable = solvable_deals(points24_rules("paper", faces_as_ten=False))
    assert solvable[1:] == (1362, 1820)
    assert solvable.share == pytest.approx(0.7918140121144, abs=1e-12)


@pytest.mark.slow
def test_points24_by_the_reference_pays_more_often() -> None:
    """Powers, rounding and glued digits solve 117 sets more, though floats spoil some."""
    solvable = solvable_deals(points24_rules("reference", faces_as_ten=True))
    assert solvable[1:] == (683, 715)
    assert solvable.share == pytest.approx(0.91638948216, abs=1e-10)


def test_every_pair_that_ez_points_can_deal_has_a_solution() -> None:
    for first in range(2, 11):
        for second in partners(first):
            assert 2 <= second <= 10
            assert solutions(tuple(sorted((first, second))), 12, "+*")
    for rules in ("paper", "reference"):
        assert make_environment("EZPoints", rules=rules).ceiling.success_rate == 1.0


def random_walk(max_position: int) -> tuple[Fraction, Fraction]:
    """Chance that a fair coin reaches the target in time, and that it succeeds."""
    numbers = range(max_position + 1)
    deals = [Position(c, t) for c in numbers for t in numbers if c != t]
    reached = succeeded = Fraction(0)
    for deal in deals:
        states = {(deal, 0): Fraction(1, len(deals))}
        for _ in range(2 * max_position):
            following: dict[tuple[Position, int], Fraction] = {}
            for (position, total), chance in states.items():
                for action in "-+":
                    after, reward = moved(position, action, max_position)
                    if reward > 0:
                        reached += chance / 2
                        succeeded += chance / 2 if total + reward > 0 else 0
                    else:
                        key = after, total + int(reward)
                        following[key] = following.get(key, Fraction(0)) + chance / 2
            states = following
    return reached, succeeded


def test_a_coin_on_the_number_line() -> None:
    """Without a wrong step: sum over distances d of P(d) / 2**d, P(d) = 2 (6 - d) / 30."""
    reached, succeeded = random_walk(5)
    assert succeeded == sum(Fraction(2 * (6 - d), 30) / 2**d for d in range(1, 6))
    assert float(succeeded) == 0.26875
    assert float(reached) == pytest.approx(0.5979, abs=1e-4)
    assert make_environment("NumberLine").ceiling.success_rate == 1.0


@pytest.mark.parametrize("max_position", [1, 2, 3, 5, 9])
def test_number_line_by_the_reference_loses_solved_starts_between_the_walls(
    max_position: int,
) -> None:
    environment = make_environment("NumberLine", rules="reference", max_position=max_position)
    lost = Fraction(max_position - 1, (max_position + 1) ** 2)
    assert environment.ceiling.success_rate == pytest.approx(float(1 - lost))


def test_blackjack_policy_that_wins_most_often() -> None:
    chances = game_chances("wins")
    assert chances.win == pytest.approx(0.4316, abs=5e-5)
    assert chances.expected_return == pytest.approx(-0.0502, abs=5e-5)
    assert sum(chances) == pytest.approx(1.0)
    assert make_environment("Blackjack").ceiling.success_rate == chances.win


def test_blackjack_policy_that_returns_most() -> None:
    chances = game_chances("return")
    assert chances.win == pytest.approx(0.4295, abs=5e-5)
    assert chances.expected_return == pytest.approx(-0.0466, abs=5e-5)
    assert chances.expected_return > game_chances("wins").expected_return


def test_blackjack_cards() -> None:
    assert sum(CHANCES.values()) == pytest.approx(1.0)
    assert CHANCES[10] == 4 / len(RANK_NAMES)
    assert CHANCES[1] == 1 / len(RANK_NAMES)


def test_the_dealer_busts_as_often_as_the_books_say() -> None:
    """28.16 % over all first cards (endless deck, standing on all 17s)."""
    totals = dealer_totals(EMPTY_HAND)
    assert totals[0] == pytest.approx(0.2816, abs=5e-5)
    assert sum(totals.values()) == pytest.approx(1.0)
    assert set(totals) == {0, 17, 18, 19, 20, 21}


@pytest.mark.parametrize(
    ("hand", "dealer_shows", "action"),
    [
        pytest.param(Hand(16, False), 10, "hit", id="hard 16 against 10"),
        pytest.param(Hand(16, False), 6, "stand", id="hard 16 against 6"),
        pytest.param(Hand(12, False), 2, "hit", id="hard 12 against 2"),
        pytest.param(Hand(12, False), 4, "stand", id="hard 12 against 4"),
        pytest.param(Hand(17, False), 10, "stand", id="hard 17 against 10"),
        pytest.param(Hand(7, True), 10, "hit", id="soft 17 against 10"),
        pytest.param(Hand(8, True), 9, "hit", id="soft 18 against 9"),
        pytest.param(Hand(8, True), 8, "stand", id="soft 18 against 8"),
        pytest.param(Hand(11, False), 1, "hit", id="11 against an ace"),
    ],
)
def test_basic_strategy_of_hit_and_stand(hand: Hand, dealer_shows: int, action: str) -> None:
    """The textbook's table (Sutton and Barto 2018, Figure 5.2) for the return."""
    assert best_choice(hand, dealer_shows, "return").action == action


def test_no_policy_does_better_by_one_deviation() -> None:
    """Both objectives: each action's worth, recomputed, never exceeds the chosen one's."""
    for hard, has_ace, shown in product(range(4, 22), (False, True), range(1, 11)):
        hand = Hand(hard, has_ace)
        for objective, worth in (("wins", 0), ("return", None)):
            chosen = best_choice(hand, shown, objective).chances
            hits = [
                (p, best_choice(hand.plus(points), shown, objective).chances)
                if not hand.plus(points).is_bust
                else (p, Chances(0.0, 0.0, 1.0))
                for points, p in CHANCES.items()
            ]
            if worth == 0:
                assert sum(p * c.win for p, c in hits) <= chosen.win + 1e-9
            else:
                total = sum(p * c.expected_return for p, c in hits)
                assert total <= chosen.expected_return + 1e-9
