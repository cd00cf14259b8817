"""Thoughts of the formula games: what experts write, and what a response claims in their words.

'7+' is incomplete, since '7+5=12', I append '5'
12 cannot be reached from '7*', so I append '='
2+9*3-5: 9*3=27, 2+27=29, 29-5=24; so, I append '+'          (an expert who searches)

An agent that was only ever shown formulas that win learns them by heart. Shown how formulas are
tried, worked out operation by operation, and dropped, it can try some of its own.
"""

import ast
import hashlib
import json
import operator
import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from forethought.environments.cards.formula import FormulaFailure, evaluate_tokens, tokenize
from forethought.environments.cards.formula_rules import FormulaRules
from forethought.environments.cards.solver import ATOM, Cards, Part, Tokens, joined
from forethought.environments.parts import concluded, last_match, read_field
from forethought.types import Claim, ThoughtFacts

MOST_MISSES = 6
"""Formulas that an expert who searches writes down before it gives up."""
HIT_AFTER = 4
"""Where the target can be reached, fewer misses than this come before the hit."""


class FormulaState(NamedTuple):
    """A state of a formula game, as far as thoughts speak of it."""

    rules: FormulaRules
    points: Cards
    """What each card counts, in the order of the cards."""
    tokens: Tokens
    """The formula so far."""
    key: str
    """The state's key, from which random formulas are drawn."""

    @property
    def text(self) -> str:
        """The formula so far, as it is shown."""
        return "".join(self.tokens)


# --- what experts write ----------------------------------------------------------------------


def expert_fields(
    state: FormulaState, whole: Tokens | None, action: str, *, searches: bool
) -> tuple[tuple[str, str], ...]:
    """The JSON fields of an expert's response before its action.

    Args:
        whole: a formula that wins and begins with what is typed; None where there is none.
        action: the token that follows.
        searches: whether the thoughts try formulas before they name the right one.
    """
    thoughts = (_search if searches else _recall)(state, whole, action)
    return (
        ("cards", json.dumps(list(state.points))),
        ("formula", json.dumps(state.text)),
        ("thoughts", json.dumps(thoughts)),
    )


def _recall(state: FormulaState, whole: Tokens | None, action: str) -> str:
    """Names the formula that wins (RL4VLM, Fig. 8), as if it were known."""
    target = state.rules.target
    if whole is None:
        return f"{target} cannot be reached from '{state.text}', so I append '{action}'"
    condition = "complete" if whole == state.tokens else "incomplete"
    formula = "".join(whole)
    return f"'{state.text}' is {condition}, since '{formula}={target}', I append '{action}'"


def _search(state: FormulaState, whole: Tokens | None, action: str) -> str:
    """Tries formulas that begin with what is typed, and works each of them out. A random number
    of them miss, or the most where none can hit."""
    digest = hashlib.sha256(state.key.encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8]))
    count = MOST_MISSES if whole is None else int(rng.integers(HIT_AFTER))
    tried = misses(state.points, state.tokens, state.rules.target, count, rng)
    formulas = tried if whole is None else [*tried, whole]
    lines = [
        f"{''.join(formula)}: {', '.join(operation.text for operation in work_out(formula))}; "
        for formula in formulas
    ]
    end = "nothing" if whole is None else "so"
    return f"{''.join(lines)}{end}, I append '{action}'"


RANDOM_OPERATORS = ("+", "-", "*", "*", "/")
"""Operators of random formulas; products lead to large targets more often."""
HIGHEST = 200
"""Results of a random formula are whole and at most so large, either way."""
DRAWS = 40
"""Random formulas that are drawn for each one that is asked for."""

_ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[Fraction, Fraction], Fraction]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
}


class Operation(NamedTuple):
    """One step of working out a formula."""

    text: str
    """"9*3=27"."""
    value: Fraction


def work_out(tokens: Tokens) -> list[Operation]:
    """Works a formula out, operation by operation, by precedence, from left to right.

    Args:
        tokens: a whole formula, as the formula games take it.

    Raises:
        ZeroDivisionError: it divides by zero.
        SyntaxError: it is not whole.
    """
    operations: list[Operation] = []
    _evaluate(ast.parse("".join(tokens), mode="eval").body, operations)
    return operations


def _evaluate(node: ast.expr, operations: list[Operation]) -> Fraction:
    """The node's value; its operations are added to the list."""
    if isinstance(node, ast.UnaryOp):
        return -_evaluate(node.operand, operations)
    if isinstance(node, ast.BinOp):
        left, right = _evaluate(node.left, operations), _evaluate(node.right, operations)
        sign, operation = _ARITHMETIC[type(node.op)]
        value = operation(left, right)
        is_plain = right.denominator == 1 and right >= 0
        operations.append(
            Operation(f"{left}{sign}{right if is_plain else f'({right})'}={value}", value)
        )
        return value
    assert isinstance(node, ast.Constant)
    assert isinstance(node.value, int)
    return Fraction(node.value)


def misses(
    points: Cards, typed: Tokens, target: int, count: int, rng: np.random.Generator
) -> list[Tokens]:
    """Draws different formulas over the cards that begin with what is typed and miss the target.

    Args:
        points: of all cards, in any order; those in `typed` are among them.
        count: how many at most; fewer where fewer are found, after `DRAWS` tries for each.
    """
    found: list[Tokens] = []
    for _ in range(count * DRAWS):
        if len(found) == count:
            break
        tokens = _random_formula(points, typed, rng)
        if tokens[: len(typed)] != typed or tokens in found:
            continue
        values = _values(tokens)
        if values and all(map(_is_simple, values)) and values[-1] != target:
            found.append(tokens)
    return found


def _values(tokens: Tokens) -> list[Fraction]:
    """Values of all operations; none where one of them divides by zero."""
    try:
        return [operation.value for operation in work_out(tokens)]
    except ZeroDivisionError:
        return []


def _is_simple(value: Fraction) -> bool:
    return value.denominator == 1 and abs(value) <= HIGHEST


def _random_formula(points: Cards, typed: Tokens, rng: np.random.Generator) -> Tokens:
    """Joins neighbors until one part is left. The cards already typed come first, in their
    order, or hardly any formula would begin like that."""
    first = [int(token) for token in typed if token.isdigit()]
    others = list(points)
    for number in first:
        others.remove(number)
    order = [*first, *(int(others[i]) for i in rng.permutation(len(others)))]
    parts = [Part((str(number),), ATOM) for number in order]
    while len(parts) > 1:
        place = int(rng.integers(len(parts) - 1))
        sign = RANDOM_OPERATORS[int(rng.integers(len(RANDOM_OPERATORS)))]
        parts[place : place + 2] = [joined(sign, parts[place], parts[place + 1])]
    return parts[0].tokens


# --- what a response claims -----------------------------------------------------------------

_UNREACHABLE = r"(cannot be reached from)|; (nothing), I append"
_CONDITION = r"' is (complete|incomplete), since"
_RECALLED = r"since '([^'=]{1,64})=-?\d+'"
_SEARCHED = r"([^:;]{1,64}): [^:;]*; so, I append"
_NUMBER = r"-?\d{1,9}(?:/\d{1,9})?"
_OPERATION = re.compile(rf"[ ,:](({_NUMBER})([-+*/])\(?({_NUMBER})\)?=({_NUMBER}))(?=[,;])")
_SIGNS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def formula_facts(
    response: str, state: FormulaState, is_winnable: Callable[[], bool]
) -> ThoughtFacts:
    """Claims about the cards and the formula; whether it is complete, how it can end, and each
    operation that is worked out.

    Args:
        is_winnable: whether the formula can still be completed in time; takes milliseconds, so
            it is asked only where a response says so.
    """
    thoughts = read_field(response, "thoughts") or ""
    return ThoughtFacts(
        perceived=(
            Claim("cards", _as_list(read_field(response, "cards")), str(list(state.points))),
            Claim("formula", read_field(response, "formula"), state.text),
        ),
        inferred=(
            *_condition(thoughts, state),
            _ending(thoughts, state, is_winnable),
            *_operations(thoughts),
        ),
        concluded_actions=concluded(r"I append '([^']{1,2})'", thoughts),
    )


def _as_list(cards: str | None) -> str | None:
    """As Python writes it: "[7,5]" is "[7, 5]"."""
    if cards is None or not cards.startswith("["):
        return cards
    return f"[{', '.join(part.strip() for part in cards[1:-1].split(','))}]"


def _condition(thoughts: str, state: FormulaState) -> tuple[Claim, ...]:
    """Whether the formula wins as it is, where that is said."""
    claimed = last_match(_CONDITION, thoughts)
    if claimed is None:
        return ()
    true = "complete" if state.rules.pays(state.tokens) else "incomplete"
    return (Claim("formula is", claimed, true),)


def _ending(thoughts: str, state: FormulaState, is_winnable: Callable[[], bool]) -> Claim:
    """The formula that is to be reached; or that none can be."""
    target = str(state.rules.target)
    formula = last_match(_RECALLED, thoughts) or last_match(_SEARCHED, thoughts)
    if re.search(_UNREACHABLE, thoughts):
        return Claim(f"{target} can be reached", "no", "yes" if is_winnable() else "no")
    if formula is None:
        return Claim("ending", None, f"a formula that is {target}")
    formula = formula.strip()
    return Claim("ending", f"{formula}={target}", f"{formula}{_outcome(formula, state)}")


def _outcome(formula: str, state: FormulaState) -> str:
    """ "=12", or why the formula is none that the game could end with."""
    tokens = tokenize(formula)
    if isinstance(tokens, FormulaFailure):
        return f" is no formula ({tokens})"
    if not formula.startswith(state.text):
        return f" does not begin with '{state.text}'"
    if Counter(filter(str.isdigit, tokens)) != Counter(map(str, state.points)):
        return " has other cards"
    if state.rules.pays(tokens):
        return f"={state.rules.target}"
    value = evaluate_tokens(tokens)
    return f" is no formula ({value})" if isinstance(value, FormulaFailure) else f"={value}"


def _operations(thoughts: str) -> tuple[Claim, ...]:
    """Each "9*3=27", beside what it comes to."""
    return tuple(
        Claim("operation", whole, f"{whole[: -len(claimed)]}{_computed(left, sign, right)}")
        for whole, left, sign, right, claimed in _OPERATION.findall(thoughts)
    )


def _computed(left: str, sign: str, right: str) -> str:
    try:
        return str(_SIGNS[sign](Fraction(left), Fraction(right)))
    except ZeroDivisionError:
        return "nothing"
