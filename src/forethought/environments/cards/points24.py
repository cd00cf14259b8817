"""Points24: make 24 of four cards."""

import hashlib
from collections import Counter
from functools import lru_cache
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Literal, NamedTuple, get_args

import numpy as np

from forethought.configs.parts import AnswerFormat
from forethought.environments.cards.canvas import MAX_SIZE, MIN_SIZE
from forethought.environments.cards.deck import ACE, KING, TEN, draw_card
from forethought.environments.cards.formula_game import (
    FormulaGame,
    FormulaRules,
    paying_formulas,
)
from forethought.environments.cards.formula_picture import formula_picture
from forethought.environments.cards.formula_thoughts import formula_facts
from forethought.environments.cards.solver import Cards, is_solvable
from forethought.environments.cards.wording import CardsPrompter
from forethought.environments.contract import Ceiling, ExpertAction, Transition
from forethought.environments.options import is_flag, is_whole_number, require_option
from forethought.environments.wording import Prompter, Wording
from forethought.types import Image, Metric, Observation, ThoughtFacts

TARGET = 24
CARD_COUNT = 4
FORMULA_LINES = 3


def points24_rules(rules: str, faces_as_ten: bool) -> FormulaRules:
    """The game as the paper states it, or as its code plays it (`reference`)."""
    highest = TEN if faces_as_ten else KING
    return FormulaRules(
        name="Points24",
        target=TARGET,
        card_count=CARD_COUNT,
        numbers=tuple(str(number) for number in range(1, highest + 1)),
        operators="+-*/",
        has_parentheses=True,
        paper_limit_steps=20,
        is_reference=rules == "reference",
    )


Deals = Literal["all", "seen", "unseen"]
"""Which sets of values are dealt: all of them, or one part of a fixed split."""

UNSEEN_OF = 5
"""One set of values in so many is held out from `seen`."""


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
    """Of all deals, weighted by how often each is dealt."""
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
    for cards in combinations_with_replacement(sorted(weights), CARD_COUNT):
        if not is_dealt(cards, deals):
            continue
        orders = factorial(CARD_COUNT) / prod(map(factorial, Counter(cards).values()))
        weight = orders * prod(weights[points] for points in cards)
        dealt, seen = dealt + weight, seen + 1
        if _is_winnable(rules, cards):
            won, multisets = won + weight, multisets + 1
    return Solvable(won / dealt, multisets, seen)


def _is_winnable(rules: FormulaRules, cards: Cards) -> bool:
    if rules.is_reference:
        return bool(paying_formulas(rules, cards))
    return is_solvable(cards, rules.target, rules.operators)


class Points24:
    """Type a formula over four cards that equals 24.

    Description: a number, an operator or a parenthesis is appended to the formula at
    each step; "=" hands it in. RL4VLM, B.1.3.

    Observation: uint8 [image_size, image_size, 3], the four cards with the formula
    below; the formula also as text.

    Actions: "1" to "10" (to "13" without `faces_as_ten`), "+", "-", "*", "/", "(",
    ")", "=".

    Rewards: "=": +10 if the formula is 24, in exact fractions, with all four cards
    used once, else -1. A number that is not on an unused card is illegal: -1, nothing
    changes. Else 0. A text that names no action: -1, nothing changes.

    Start: four cards, independent and uniform over A to K. Not every deal can be won;
    there the expert says so and hands in at once.

    End: terminated by "="; truncated after 20 steps.

    Success: the episode's return is above 0.

    Ceiling: 73.09 % (566 of the 715 sets of values), 79.18 % without `faces_as_ten`,
    by solving every deal. 71.85 % of the deals of
    `deals="seen"`, 79.35 % of "unseen". Higher with `rules="reference"`, where more
    formulas pay.

    Arguments:
        rules: "paper", or "reference" for the public repository's behavior: an illegal
            number appends a blank; the formula is worth what Python makes of its text
            (powers, rounded quotients, digits side by side, floats that must be equal
            to 24); the 22nd step costs 1, does nothing, and truncates.
        image_size: side of the picture, 48 to 1024 pixels.
        faces_as_ten: J, Q and K count 10; else 11, 12 and 13.
        deals: "all"; or, to tell memory from reasoning, "seen" or "unseen": a fixed fifth
            of the sets of four values, order and suits aside, is never dealt in "seen",
            and nothing else is in "unseen".
        expert: "recall", the formula is named at once (RL4VLM); "search", its thoughts try
            formulas and work them out until one is 24. Under paper rules alone.

    Version history:
        v0: first version.
    """

    def __init__(
        self,
        rules: Literal["paper", "reference"] = "paper",
        image_size: int = 300,
        faces_as_ten: bool = True,
        deals: Deals = "all",
        expert: Literal["recall", "search"] = "recall",
    ) -> None:
        require_option(rules in ("paper", "reference"), "rules", rules, "paper or reference")
        require_option(
            is_whole_number(image_size, MIN_SIZE, MAX_SIZE),
            "image_size",
            image_size,
            f"a whole number from {MIN_SIZE} to {MAX_SIZE}",
        )
        require_option(is_flag(faces_as_ten), "faces_as_ten", faces_as_ten, "True or False")
        require_option(deals in get_args(Deals), "deals", deals, "all, seen or unseen")
        require_option(expert in ("recall", "search"), "expert", expert, "recall or search")
        searches = expert == "search"
        is_possible = rules == "paper" or not searches
        require_option(is_possible, "expert", expert, "recall under reference rules")
        self.image_size = image_size
        self._deals: Deals = deals
        self._game = FormulaGame(points24_rules(rules, faces_as_ten), searches=searches)
        self._faces_as_ten = faces_as_ten

    @property
    def actions(self) -> tuple[str, ...]:
        return self._game.rules.actions

    @property
    def ceiling(self) -> Ceiling:
        solvable = solvable_deals(self._game.rules, self._deals)
        return Ceiling(
            solvable.share,
            f"exact: {solvable.multisets} of {solvable.all_multisets} sets of four values "
            "can be won, weighted by how often each is dealt",
        )

    def reset(self, seed: int) -> Observation:
        self.np_random = np.random.default_rng(seed)
        self._deal()
        return self.observation()

    def observation(self) -> Observation:
        return Observation(
            text=self._game.text,
            image=self._picture(),
            admissible_actions=None,
            state_key=self._game.state_key,
            goal=f"Make {TARGET} of the four cards, each used once.",
            task_type="Points24",
        )

    def step(self, action: str) -> Transition:
        return self._game.step(action)

    def legal_actions(self) -> tuple[str, ...]:
        return self._game.legal_actions()

    def expert(self) -> ExpertAction:
        return self._game.expert()

    def thought_facts(self, response: str) -> ThoughtFacts:
        return formula_facts(response, self._game)

    def prompter(self, answer_format: AnswerFormat, wording: Wording) -> Prompter:
        return CardsPrompter("Points24", self.actions, answer_format, wording)

    def success(self) -> bool:
        return self._game.episode.total_reward > 0

    def metrics(self) -> tuple[Metric, ...]:
        return ()

    def close(self) -> None:
        """Nothing is held open."""

    def _picture(self) -> Image:
        return formula_picture(self.image_size, self._game.cards, self._game.tokens, FORMULA_LINES)

    def _deal(self) -> None:
        while True:
            cards = tuple(draw_card(self.np_random) for _ in range(CARD_COUNT))
            points = tuple(card.points if self._faces_as_ten else card.rank for card in cards)
            if is_dealt(tuple(sorted(points)), self._deals):
                self._game.begin(cards, points)
                return
