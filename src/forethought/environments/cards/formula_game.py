"""The rules that EZPoints and Points24 share: type a formula over your cards, then "="."""

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from forethought.environments.cards.attempts import misses, work_out
from forethought.environments.cards.deck import Card
from forethought.environments.cards.formula import evaluate_tokens
from forethought.environments.cards.python_arithmetic import evaluate_like_python
from forethought.environments.cards.python_solver import python_solution
from forethought.environments.cards.solver import Cards, Tokens, completion, solutions
from forethought.environments.contract import ExpertAction, Transition
from forethought.environments.episode import Episode

WIN, PENALTY = 10.0, -1.0
MOST_MISSES = 6
"""That an expert who searches writes down before it gives up."""
HIT_AFTER = 4
"""Where the target can be reached, fewer misses than this come before the hit."""
BLANK = " "
"""What `rules="reference"` appends for an illegal number."""

EXTRA_REFERENCE_STEPS = 2
"""The public repository stops before the step at which the formula has more tokens than
the paper's limit T, so an episode lasts up to T + 2 steps; the last one only costs."""


@dataclass(frozen=True)
class FormulaRules:
    """What tells one formula game from another."""

    name: str
    target: int
    card_count: int
    numbers: tuple[str, ...]
    operators: str
    """Of + - * /, those that may be typed."""
    has_parentheses: bool
    paper_limit_steps: int
    is_reference: bool

    @property
    def actions(self) -> tuple[str, ...]:
        parentheses = ("(", ")") if self.has_parentheses else ()
        return (*self.numbers, *self.operators, *parentheses, "=")

    @property
    def limit_steps(self) -> int:
        return self.paper_limit_steps + (EXTRA_REFERENCE_STEPS if self.is_reference else 0)

    def pays(self, tokens: Tokens) -> bool:
        """Whether "=" after these (legally typed) tokens wins: all cards, and the target."""
        if sum(token.isdigit() for token in tokens) != self.card_count:
            return False
        if self.is_reference:
            return evaluate_like_python("".join(tokens)) == self.target
        return evaluate_tokens(tokens) == self.target


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


class FormulaGame:
    """One deal after another, played by the given rules."""

    def __init__(self, rules: FormulaRules, *, searches: bool = False) -> None:
        """
        Args:
            searches: whether the expert's thoughts try formulas before they name the right one.
        """
        self.rules = rules
        self._searches = searches
        self.cards: tuple[Card, ...] = ()
        self.points: Cards = ()
        """What each card counts, in the order of `cards`."""
        self.tokens: Tokens = ()
        """The formula so far; "=" ends it."""
        self.episode = Episode(rules.limit_steps)

    def begin(self, cards: tuple[Card, ...], points: Cards) -> None:
        self.cards, self.points, self.tokens = cards, points, ()
        self.episode.begin()

    @property
    def text(self) -> str:
        return "".join(self.tokens)

    @property
    def state_key(self) -> str:
        """The cards and the formula: what the next rewards depend on, the clock apart."""
        cards = " ".join(f"{card.name}{card.suit}" for card in self.cards)
        return f"{cards} | {' '.join(self.tokens)}"

    def step(self, action: str) -> Transition:
        self.episode.require_open()
        if self.rules.is_reference and self.episode.is_last_step:
            return self.episode.record(PENALTY, terminated=False)
        if action not in self.rules.actions:
            return self.episode.record(PENALTY, terminated=False)
        if action.isdigit() and action not in self.unused_numbers():
            if self.rules.is_reference:
                self.tokens += (BLANK,)
            return self.episode.record(PENALTY, terminated=False)
        wins = action == "=" and self.rules.pays(self.tokens)
        self.tokens += (action,)
        if action == "=":
            return self.episode.record(WIN if wins else PENALTY, terminated=True)
        return self.episode.record(0.0, terminated=False)

    def unused_numbers(self) -> list[str]:
        """Numbers of the cards that the formula does not use yet."""
        left = [str(points) for points in self.points]
        for token in self.tokens:
            if token.isdigit():
                left.remove(token)
        return left

    def legal_actions(self) -> tuple[str, ...]:
        """All that is not penalized: unused numbers, every operator, "=" (RL4VLM, B.1.2)."""
        if self.episode.is_over:
            return ()
        unused = self.unused_numbers()
        return tuple(
            action for action in self.rules.actions if not action.isdigit() or action in unused
        )

    def completion(self) -> Tokens | None:
        """What to type before "=" in order to win from here; None if it cannot be done."""
        cards = tuple(sorted(self.points))
        typed = tuple(token for token in self.tokens if token != BLANK)
        for formula in paying_formulas(self.rules, cards):
            if formula[: len(typed)] == typed:
                rest: Tokens | None = formula[len(typed) :]
                break
        else:
            rest = completion(cards, typed, self.rules.target, self.rules.operators)
        if rest is None or not self.rules.pays(self.tokens + rest):
            return None
        useless_steps = 1 if self.rules.is_reference else 0
        steps_left = self.rules.limit_steps - self.episode.steps - useless_steps
        return rest if len(rest) + 1 <= steps_left else None

    def expert(self, chosen: str | None = None) -> ExpertAction:
        """The next token towards the target; "=" at once where it cannot be reached.

        Args:
            chosen: what to do instead; what is seen and known stays as it is.
        """
        self.episode.require_open()
        rest = self.completion()
        action = chosen or (rest[0] if rest else "=")
        whole = None if rest is None else self.tokens + rest
        thoughts = self._search(whole, action) if self._searches else self._recall(whole, action)
        return ExpertAction(
            action,
            (
                ("cards", json.dumps(list(self.points))),
                ("formula", json.dumps(self.text)),
                ("thoughts", json.dumps(thoughts)),
            ),
        )

    def _recall(self, whole: Tokens | None, action: str) -> str:
        """Names the formula that wins (RL4VLM, Fig. 8), as if it were known."""
        target = self.rules.target
        if whole is None:
            return f"{target} cannot be reached from '{self.text}', so I append '{action}'"
        condition = "complete" if whole == self.tokens else "incomplete"
        formula = "".join(whole)
        return f"'{self.text}' is {condition}, since '{formula}={target}', I append '{action}'"

    def _search(self, whole: Tokens | None, action: str) -> str:
        """Tries formulas that begin with what is typed, and works each of them out. As many miss
        as chance says, or the most where none can hit."""
        digest = hashlib.sha256(self.state_key.encode()).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:8]))
        count = MOST_MISSES if whole is None else int(rng.integers(HIT_AFTER))
        tried = misses(self.points, self.tokens, self.rules.target, count, rng)
        formulas = tried if whole is None else [*tried, whole]
        lines = [
            f"{''.join(formula)}: {', '.join(operation.text for operation in work_out(formula))}; "
            for formula in formulas
        ]
        end = "nothing" if whole is None else "so"
        return f"{''.join(lines)}{end}, I append '{action}'"
