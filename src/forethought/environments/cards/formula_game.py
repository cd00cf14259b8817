"""EZPoints and Points24: one game, typing a formula over the cards, with two sets of parameters."""

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

import numpy as np

from forethought.configs.parts import ResponseFormat
from forethought.environments.cards.drawing import MAX_SIZE, MIN_SIZE, Card
from forethought.environments.cards.formula_rules import (
    BLANK,
    Deals,
    FormulaRules,
    RuleSet,
    card_points,
    deal_ez_points,
    deal_points24,
    ez_points_rules,
    points24_rules,
    solvable_deals,
    solvable_pairs,
    unused_numbers,
    winning_completion,
)
from forethought.environments.cards.formula_thoughts import (
    FormulaState,
    expert_fields,
    formula_facts,
)
from forethought.environments.cards.images import formula_image
from forethought.environments.cards.solver import Tokens
from forethought.environments.cards.wording import CardsPrompter
from forethought.environments.contract import (
    Ceiling,
    ExpertAction,
    Prompter,
    Transition,
    Wording,
)
from forethought.environments.parts import (
    EXPERTS,
    Episode,
    ExpertName,
    is_flag,
    random_choice,
    require_option,
    require_whole_number,
)
from forethought.types import Metric, Observation, ThoughtFacts

WIN, PENALTY = 10.0, -1.0

FormulaExpert = Literal["recall", "search", "random_choice"]
"""Names the winning formula at once; tries formulas in its thoughts; or chooses at random."""


class FormulaGame:
    """A formula game: append a number or a sign to the formula at each step, "=" hands it in.

    `ez_points` and `points24` build the two that are registered, and describe them.
    """

    def __init__(
        self,
        rules: FormulaRules,
        *,
        deal: Callable[[np.random.Generator], tuple[Card, ...]],
        ceiling: Callable[[], Ceiling],
        faces_as_ten: bool,
        expert: FormulaExpert,
        image_size: int,
    ) -> None:
        """
        Args:
            rules: the game's parameters.
            deal: draws the cards of an episode.
            ceiling: computes the best success rate, which may take seconds.
            faces_as_ten: J, Q and K count 10; else 11, 12 and 13.
            expert: what its thoughts say, and what it chooses.
            image_size: side of the image, pixels.
        """
        self.rules = rules
        self.image_size = image_size
        self.cards: tuple[Card, ...] = ()
        self.tokens: Tokens = ()
        """The formula so far; "=" ends it."""
        self._deal = deal
        self._ceiling = ceiling
        self._faces_as_ten = faces_as_ten
        self._expert: FormulaExpert = expert
        self._episode = Episode(rules.limit_steps)

    @property
    def actions(self) -> tuple[str, ...]:
        """Numbers, operators, parentheses where the game has them, and "="."""
        return self.rules.actions

    @property
    def ceiling(self) -> Ceiling:
        """The best success rate, by solving every deal."""
        return self._ceiling()

    def reset(self, seed: int) -> Observation:
        """Deals the cards of the seed."""
        self.np_random = np.random.default_rng(seed)
        self.begin(self._deal(self.np_random))
        return self.observation()

    def begin(self, cards: tuple[Card, ...]) -> None:
        """Starts an episode with these cards."""
        self.cards, self.tokens = cards, ()
        self._points = card_points(cards, self._faces_as_ten)
        self._episode.begin()

    def observation(self) -> Observation:
        """The cards and the formula as an image; the formula also as text."""
        lines = self.rules.formula_lines
        return Observation(
            text=self.text,
            image=formula_image(self.image_size, self.cards, self.tokens, lines),
            admissible_actions=None,
            state_key=self.state_key,
            goal=self.rules.goal,
            task_type=self.rules.name,
        )

    @property
    def text(self) -> str:
        """The formula so far."""
        return "".join(self.tokens)

    @property
    def state_key(self) -> str:
        """The cards and the formula: what the next rewards depend on, the clock apart."""
        cards = " ".join(f"{card.name}{card.suit}" for card in self.cards)
        return f"{cards} | {' '.join(self.tokens)}"

    def step(self, action: str) -> Transition:
        """Appends a token; pays 10 for "=" after a formula that wins, -1 for any other "=".

        Raises:
            RuntimeError: the episode is over.
        """
        self._episode.require_open()
        if self.rules.is_reference and self._episode.is_last_step:
            return self._episode.record(PENALTY, terminated=False)
        if action not in self.rules.actions:
            return self._episode.record(PENALTY, terminated=False)
        if action.isdigit() and action not in unused_numbers(self._points, self.tokens):
            if self.rules.is_reference:
                self.tokens += (BLANK,)
            return self._episode.record(PENALTY, terminated=False)
        wins = action == "=" and self.rules.pays(self.tokens)
        self.tokens += (action,)
        if action == "=":
            return self._episode.record(WIN if wins else PENALTY, terminated=True)
        return self._episode.record(0.0, terminated=False)

    def legal_actions(self) -> tuple[str, ...]:
        """All that is not penalized: unused numbers, every operator, "=" (RL4VLM, B.1.2)."""
        if self._episode.is_over:
            return ()
        unused = unused_numbers(self._points, self.tokens)
        return tuple(
            action for action in self.rules.actions if not action.isdigit() or action in unused
        )

    def completion(self) -> Tokens | None:
        """The tokens to type before "=" in order to win from here; None if there are none."""
        return winning_completion(self.rules, self._points, self.tokens, self._episode.steps)

    def expert(self) -> ExpertAction:
        """The next token towards the target, "=" at once where it cannot be reached; or a
        random legal one, with the same thoughts.

        Raises:
            RuntimeError: the episode is over.
        """
        self._episode.require_open()
        rest = self.completion()
        action = rest[0] if rest else "="
        if self._expert == "random_choice":
            action = random_choice(self.legal_actions(), self.np_random, self._episode.steps)
        whole = None if rest is None else self.tokens + rest
        fields = expert_fields(self._state(), whole, action, searches=self._expert == "search")
        return ExpertAction(action, fields)

    def thought_facts(self, response: str) -> ThoughtFacts:
        """What a response claims about cards, formula and ending, and the truth."""
        return formula_facts(response, self._state(), lambda: self.completion() is not None)

    def prompter(self, response_format: ResponseFormat, wording: Wording) -> Prompter:
        """The game's prompt, short or as published."""
        return CardsPrompter(self.rules.name, self.actions, response_format, wording)

    def success(self) -> bool:
        """Whether the episode's return is above 0."""
        return self._episode.total_reward > 0

    def metrics(self) -> tuple[Metric, ...]:
        """Nothing beyond return and success."""
        return ()

    def close(self) -> None:
        """Nothing is held open."""

    def _state(self) -> FormulaState:
        return FormulaState(self.rules, self._points, self.tokens, self.state_key)


def ez_points(
    rules: RuleSet = "paper", image_size: int = 300, expert: ExpertName = "optimal"
) -> FormulaGame:
    """EZPoints: type a formula over two cards that equals 12.

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
            number appends a blank; the formula counts as what Python makes of its text
            ("5++7" is 12); the 7th step costs 1, does nothing, and truncates.
        image_size: side of the image, 48 to 1024 pixels.
        expert: "optimal", or "random_choice" for one that sees as well, says the same, and
            names an action drawn uniformly from the legal ones.

    Version history:
        v0: first version.
    """
    _require_common(rules, image_size)
    require_option(expert in EXPERTS, "expert", expert, " or ".join(EXPERTS))
    game = ez_points_rules(rules)
    method = "exact: every pair that can be dealt, solved"
    return FormulaGame(
        game,
        deal=deal_ez_points,
        ceiling=lambda: Ceiling(solvable_pairs(game), method),
        faces_as_ten=True,
        expert="recall" if expert == "optimal" else "random_choice",
        image_size=image_size,
    )


def points24(
    rules: RuleSet = "paper",
    image_size: int = 300,
    faces_as_ten: bool = True,
    deals: Deals = "all",
    expert: Literal["recall", "search"] = "recall",
) -> FormulaGame:
    """Points24: type a formula over four cards that equals 24.

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
    by solving every deal. 71.85 % of the deals of `deals="seen"`, 79.35 % of "unseen".
    Higher with `rules="reference"`, where more formulas pay.

    Arguments:
        rules: "paper", or "reference" for the public repository's behavior: an illegal
            number appends a blank; the formula counts as what Python makes of its text
            (powers, rounded quotients, digits side by side, floats that must be equal
            to 24); the 22nd step costs 1, does nothing, and truncates.
        image_size: side of the image, 48 to 1024 pixels.
        faces_as_ten: J, Q and K count 10; else 11, 12 and 13.
        deals: "all"; or, to distinguish memory from reasoning, "seen" or "unseen": a fixed
            fifth of the sets of four values, order and suits aside, is never dealt in
            "seen", and nothing else is in "unseen".
        expert: "recall", the formula is named at once (RL4VLM); "search", its thoughts try
            formulas and work them out until one is 24. Under paper rules alone.

    Version history:
        v0: first version.
    """
    _require_common(rules, image_size)
    require_option(is_flag(faces_as_ten), "faces_as_ten", faces_as_ten, "True or False")
    require_option(deals in get_args(Deals), "deals", deals, "all, seen or unseen")
    require_option(expert in ("recall", "search"), "expert", expert, "recall or search")
    is_possible = rules == "paper" or expert == "recall"
    require_option(is_possible, "expert", expert, "recall under reference rules")
    game = points24_rules(rules, faces_as_ten)

    def ceiling() -> Ceiling:
        solvable = solvable_deals(game, deals)
        return Ceiling(
            solvable.share,
            f"exact: {solvable.multisets} of {solvable.all_multisets} sets of four values "
            "can be won, weighted by how often each is dealt",
        )

    return FormulaGame(
        game,
        deal=partial(deal_points24, faces_as_ten=faces_as_ten, deals=deals),
        ceiling=ceiling,
        faces_as_ten=faces_as_ten,
        expert=expert,
        image_size=image_size,
    )


def _require_common(rules: str, image_size: int) -> None:
    require_option(rules in get_args(RuleSet), "rules", rules, "paper or reference")
    require_whole_number("image_size", image_size, MIN_SIZE, MAX_SIZE)
