"""Rules of the formula games: what pays, how it can be reached, and the two games' parameters.

EZPoints makes 12 of two cards (RL4VLM, B.1.2), Points24 makes 24 of four (B.1.3).
"""

import hashlib
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Literal, NamedTuple

import numpy as np

from forethought.environments.cards.drawing import (
    ACE,
    KING,
    SUIT_NAMES,
    TEN,
    Card,
    draw_card,
)
from forethought.environments.cards.formula import evaluate_tokens
from forethought.environments.cards.python_arithmetic import evaluate_like_python, python_solution
from forethought.environments.cards.solver import (
    Cards,
    Tokens,
    completion,
    is_solvable,
    solutions,
)

BLANK = " "
"""What `rules="reference"` appends for an illegal number."""

EXTRA_REFERENCE_STEPS = 2
"""The public repository stops before the step at which the formula has more tokens than
the paper's limit T, so an episode lasts up to T + 2 steps; the last one only costs."""

UNSEEN_OF = 5
"""One set of Points24's values in so many is held out from `seen`."""

RuleSet = Literal["paper", "reference"]
Deals = Literal["all", "seen", "unseen"]
"""Which sets of values Points24 deals: all of them, or one part of a fixed split."""


@dataclass(frozen=True)
class FormulaRules:
    """Parameters by which one formula game differs from another."""

    name: str
    target: int
    card_count: int
    numbers: tuple[str, ...]
    operators: str
    """Those of + - * / that may be typed."""
    has_parentheses: bool
    paper_limit_steps: int
    is_reference: bool
    formula_lines: int
    """Lines of the image that are kept for the formula."""
    goal: str

    @property
    def actions(self) -> tuple[str, ...]:
        """Every token that may be typed, "=" last."""
        parentheses = ("(", ")") if self.has_parentheses else ()
        return (*self.numbers, *self.operators, *parentheses, "=")

    @property
    def limit_steps(self) -> int:
        """Steps after which an episode is truncated."""
        return self.paper_limit_steps + (EXTRA_REFERENCE_STEPS if self.is_reference else 0)

    def pays(self, tokens: Tokens) -> bool:
        """Whether "=" after these (legally typed) tokens wins: all cards, and the target."""
        if sum(token.isdigit() for token in tokens) != self.card_count:
            return False
        if self.is_reference:
            return evaluate_like_python("".join(tokens)) == self.target
        return evaluate_tokens(tokens) == self.target


def unused_numbers(points: Cards, typed: Tokens) -> list[str]:
    """Numbers of the cards that the formula does not use yet."""
    left = [str(number) for number in points]
    for token in typed:
        if token.isdigit():
            left.remove(token)
    return left


@lru_cache(maxsize=4096)
def paying_formulas(rules: FormulaRules, cards: Cards) -> tuple[Tokens, ...]:
    """Formulas over the (sorted) cards that win, simplest first; empty if there are none.

    Under the reference rules: the exact solutions that floats do not spoil, or else
    one formula that only Python's arithmetic makes right.
    """
    formulas = solutions(cards, rules.target, rules.operators)
    if not rules.is_reference:
        return formulas
    formulas = tuple(formula for formula in formulas if rules.pays(formula))
    if formulas or not rules.has_parentheses:
        return formulas
    formula = python_solution(cards, rules.target)
    return () if formula is None else (formula,)


def winning_completion(
    rules: FormulaRules, points: Cards, typed: Tokens, steps: int
) -> Tokens | None:
    """The tokens to type before "=" in order to win; None if it cannot be done in time.

    Args:
        points: of all cards, in any order.
        typed: the formula so far.
        steps: of the episode so far.
    """
    cards = tuple(sorted(points))
    written = tuple(token for token in typed if token != BLANK)
    for formula in paying_formulas(rules, cards):
        if formula[: len(written)] == written:
            rest: Tokens | None = formula[len(written) :]
            break
    else:
        rest = completion(cards, written, rules.target, rules.operators)
    if rest is None or not rules.pays(typed + rest):
        return None
    useless_steps = 1 if rules.is_reference else 0
    steps_left = rules.limit_steps - steps - useless_steps
    return rest if len(rest) + 1 <= steps_left else None


# --- EZPoints --------------------------------------------------------------------------------


def ez_points_rules(rules: RuleSet) -> FormulaRules:
    """EZPoints as the paper states it, or as its code plays it (`reference`)."""
    return FormulaRules(
        name="EZPoints",
        target=12,
        card_count=2,
        numbers=tuple(str(number) for number in range(1, TEN + 1)),
        operators="+*",
        has_parentheses=False,
        paper_limit_steps=5,
        is_reference=rules == "reference",
        formula_lines=1,
        goal="Make 12 of the two cards, each used once.",
    )


def partners(points: int) -> tuple[int, ...]:
    """What the second card may count: the rest of the sum, or of the product, of 12."""
    quotient = (12 // points,) if 12 % points == 0 else ()
    return (12 - points, *quotient)


def deal_ez_points(np_random: np.random.Generator) -> tuple[Card, ...]:
    """Two cards of which 12 can be made; see `ez_points` for their distribution."""
    first = draw_card(np_random, low=2)
    choices = partners(first.points)
    rank = choices[int(np_random.integers(2)) % len(choices)]
    second = Card(rank, int(np_random.integers(len(SUIT_NAMES))))
    swaps = np_random.integers(2) == 1
    return (second, first) if swaps else (first, second)


@lru_cache(maxsize=2)
def solvable_pairs(rules: FormulaRules) -> float:
    """Share of the pairs that EZPoints can deal, equally weighted, that a formula wins."""
    pairs = {
        tuple(sorted((points, partner)))
        for points in range(2, TEN + 1)
        for partner in partners(points)
    }
    return sum(bool(paying_formulas(rules, pair)) for pair in pairs) / len(pairs)


# --- Points24 --------------------------------------------------------------------------------


def points24_rules(rules: RuleSet, faces_as_ten: bool) -> FormulaRules:
    """Points24 as the paper states it, or as its code plays it (`reference`)."""
    highest = TEN if faces_as_ten else KING
    return FormulaRules(
        name="Points24",
        target=24,
        card_count=4,
        numbers=tuple(str(number) for number in range(1, highest + 1)),
        operators="+-*/",
        has_parentheses=True,
        paper_limit_steps=20,
        is_reference=rules == "reference",
        formula_lines=3,
        goal="Make 24 of the four cards, each used once.",
    )


def deal_points24(
    np_random: np.random.Generator, faces_as_ten: bool, deals: Deals
) -> tuple[Card, ...]:
    """Four cards, independent and uniform over A to K, drawn until they are in the split."""
    while True:
        cards = tuple(draw_card(np_random) for _ in range(4))
        if is_dealt(tuple(sorted(card_points(cards, faces_as_ten))), deals):
            return cards


def card_points(cards: tuple[Card, ...], faces_as_ten: bool) -> Cards:
    """What each card counts, in the order of the cards."""
    return tuple(card.points if faces_as_ten else card.rank for card in cards)


@lru_cache(maxsize=4096)
def is_dealt(cards: Cards, deals: Deals) -> bool:
    """Whether the (sorted) values are in this part of the split.

    By a digest of the values, so that the split is the same on every machine and does not
    depend on which sets can be solved.
    """
    if deals == "all":
        return True
    digest = hashlib.sha256(" ".join(map(str, cards)).encode()).digest()
    is_unseen = int.from_bytes(digest[:4], "big") % UNSEEN_OF == 0
    return is_unseen == (deals == "unseen")


class Solvable(NamedTuple):
    """How many deals can be won."""

    share: float
    """Share of all deals, weighted by how often each is dealt."""
    multisets: int
    """Different sets of four values, order aside, that can be won."""
    all_multisets: int


@lru_cache(maxsize=12)
def solvable_deals(rules: FormulaRules, deals: Deals = "all") -> Solvable:
    """Solves every set of four values that is dealt and weighs it by its probability. Takes
    about half a second, some seconds under the reference rules."""
    highest = len(rules.numbers)
    weights = Counter(min(rank, highest) for rank in range(ACE, KING + 1))
    dealt, won, multisets, seen = 0.0, 0.0, 0, 0
    for cards in combinations_with_replacement(sorted(weights), rules.card_count):
        if not is_dealt(cards, deals):
            continue
        orders = factorial(rules.card_count) / prod(map(factorial, Counter(cards).values()))
        weight = orders * prod(weights[points] for points in cards)
        dealt, seen = dealt + weight, seen + 1
        if _is_winnable(rules, cards):
            won, multisets = won + weight, multisets + 1
    return Solvable(won / dealt, multisets, seen)


def _is_winnable(rules: FormulaRules, cards: Cards) -> bool:
    if rules.is_reference:
        return bool(paying_formulas(rules, cards))
    return is_solvable(cards, rules.target, rules.operators)
