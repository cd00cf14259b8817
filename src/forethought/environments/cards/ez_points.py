"""EZPoints: make 12 of two cards."""

from functools import lru_cache
from typing import Literal

import numpy as np

from forethought.configs.parts import AnswerFormat
from forethought.environments.cards.canvas import MAX_SIZE, MIN_SIZE
from forethought.environments.cards.deck import SUIT_NAMES, TEN, Card, draw_card
from forethought.environments.cards.formula_game import (
    FormulaGame,
    FormulaRules,
    paying_formulas,
)
from forethought.environments.cards.formula_picture import formula_picture
from forethought.environments.cards.formula_thoughts import formula_facts
from forethought.environments.cards.wording import CardsPrompter
from forethought.environments.contract import Ceiling, ExpertAction, Transition
from forethought.environments.experts import EXPERTS, ExpertName, random_choice
from forethought.environments.options import is_whole_number, require_option
from forethought.environments.wording import Prompter, Wording
from forethought.types import Image, Metric, Observation, ThoughtFacts

TARGET = 12
FORMULA_LINES = 1


def ez_points_rules(rules: str) -> FormulaRules:
    """The game as the paper states it, or as its code plays it (`reference`)."""
    return FormulaRules(
        name="EZPoints",
        target=TARGET,
        card_count=2,
        numbers=tuple(str(number) for number in range(1, TEN + 1)),
        operators="+*",
        has_parentheses=False,
        paper_limit_steps=5,
        is_reference=rules == "reference",
    )


def partners(points: int) -> tuple[int, ...]:
    """What the second card may count: the rest of the sum, or of the product, of 12."""
    quotient = (TARGET // points,) if TARGET % points == 0 else ()
    return (TARGET - points, *quotient)


@lru_cache(maxsize=2)
def ceiling_success_rate(rules: FormulaRules) -> float:
    """Share of the pairs that can be dealt, equally weighted, that a formula wins."""
    pairs = {
        tuple(sorted((points, partner)))
        for points in range(2, TEN + 1)
        for partner in partners(points)
    }
    return sum(bool(paying_formulas(rules, pair)) for pair in pairs) / len(pairs)


class EZPoints:
    """Type a formula over two cards that equals 12.

    Description: a number or an operator is appended to the formula at each step; "="
    hands it in. J, Q and K count 10. RL4VLM, B.1.2.

    Observation: uint8 [image_size, image_size, 3], the two cards with the formula
    below; the formula also as text.

    Actions: "1" to "10", "+", "*", "=".

    Rewards: "=": +10 if the formula is 12 with both cards used once, else -1. A number
    that is not on an unused card is illegal: -1, nothing changes. Else 0. A text that
    names no action: -1, nothing changes.

    Start: the first card is uniform over 2 to K; the second brings the sum to 12, or,
    half the time where the first divides 12, the product. Then the two change places
    half the time. So an ace never comes, and 12 can always be made.

    End: terminated by "="; truncated after 5 steps.

    Success: the episode's return is above 0.

    Ceiling: 100 %, by solving every pair that can be dealt.

    Arguments:
        rules: "paper", or "reference" for the public repository's behavior: an illegal
            number appends a blank; the formula is worth what Python makes of its text
            ("5++7" is 12); the 7th step costs 1, does nothing, and truncates.
        image_size: side of the picture, 48 to 1024 pixels.
        expert: "optimal", or "random_choice" for one that sees as well, says the same, and
            names an action drawn uniformly from the legal ones.

    Version history:
        v0: first version.
    """

    def __init__(
        self,
        rules: Literal["paper", "reference"] = "paper",
        image_size: int = 300,
        expert: ExpertName = "optimal",
    ) -> None:
        require_option(rules in ("paper", "reference"), "rules", rules, "paper or reference")
        require_option(
            is_whole_number(image_size, MIN_SIZE, MAX_SIZE),
            "image_size",
            image_size,
            f"a whole number from {MIN_SIZE} to {MAX_SIZE}",
        )
        require_option(expert in EXPERTS, "expert", expert, " or ".join(EXPERTS))
        self.image_size = image_size
        self.expert_name = expert
        self._game = FormulaGame(ez_points_rules(rules))

    @property
    def actions(self) -> tuple[str, ...]:
        return self._game.rules.actions

    @property
    def ceiling(self) -> Ceiling:
        return Ceiling(
            ceiling_success_rate(self._game.rules), "exact: every pair that can be dealt, solved"
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
            goal=f"Make {TARGET} of the two cards, each used once.",
            task_type="EZPoints",
        )

    def step(self, action: str) -> Transition:
        return self._game.step(action)

    def legal_actions(self) -> tuple[str, ...]:
        return self._game.legal_actions()

    def expert(self) -> ExpertAction:
        if self.expert_name == "optimal":
            return self._game.expert()
        episode = self._game.episode
        episode.require_open()
        chosen = random_choice(self.legal_actions(), self.np_random, episode.steps)
        return self._game.expert(chosen)

    def thought_facts(self, response: str) -> ThoughtFacts:
        return formula_facts(response, self._game)

    def prompter(self, answer_format: AnswerFormat, wording: Wording) -> Prompter:
        return CardsPrompter("EZPoints", self.actions, answer_format, wording)

    def success(self) -> bool:
        return self._game.episode.total_reward > 0

    def metrics(self) -> tuple[Metric, ...]:
        return ()

    def close(self) -> None:
        """Nothing is held open."""

    def _picture(self) -> Image:
        return formula_picture(self.image_size, self._game.cards, self._game.tokens, FORMULA_LINES)

    def _deal(self) -> None:
        first = draw_card(self.np_random, low=2)
        choices = partners(first.points)
        rank = choices[int(self.np_random.integers(2)) % len(choices)]
        second = Card(rank, int(self.np_random.integers(len(SUIT_NAMES))))
        swaps = self.np_random.integers(2) == 1
        cards = (second, first) if swaps else (first, second)
        self._game.begin(cards, tuple(card.points for card in cards))
