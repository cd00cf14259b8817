"""Formulas that miss, and how a formula is worked out: what an expert writes that searches.

An agent that was only ever shown formulas that win learns them by heart. Shown how formulas are
tried, worked out operation by operation, and dropped, it can try some of its own.
"""

import ast
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from forethought.environments.cards.solver import ATOM, Cards, Part, Tokens, joined

OPERATORS = ("+", "-", "*", "*", "/")
"""Of random formulas; products lead to large targets more often."""
HIGHEST = 200
"""Of a random formula no result is larger, either way, or broken."""
DRAWS = 40
"""Random formulas that are looked at for each one that is wanted."""

_OPERATIONS: dict[type[ast.operator], tuple[str, Callable[[Fraction, Fraction], Fraction]]] = {
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
    """A formula operation by operation, by the rules of precedence, from left to right.

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
        sign, operation = _OPERATIONS[type(node.op)]
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
    """Different formulas over the cards that begin with what is typed and miss the target.

    Args:
        points: of all cards, in any order; those in `typed` are among them.
        count: how many at most; fewer where chance finds fewer, after `DRAWS` tries for each.
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
    """Of all operations; none where one of them divides by zero."""
    try:
        return [operation.value for operation in work_out(tokens)]
    except ZeroDivisionError:
        return []


def _is_simple(value: Fraction) -> bool:
    return value.denominator == 1 and abs(value) <= HIGHEST


def _random_formula(points: Cards, typed: Tokens, rng: np.random.Generator) -> Tokens:
    """Neighbors are joined until one part is left. The cards already typed come first, in their
    order, or hardly any formula would begin like that."""
    first = [int(token) for token in typed if token.isdigit()]
    others = list(points)
    for number in first:
        others.remove(number)
    order = [*first, *(int(others[i]) for i in rng.permutation(len(others)))]
    parts = [Part((str(number),), ATOM) for number in order]
    while len(parts) > 1:
        place = int(rng.integers(len(parts) - 1))
        sign = OPERATORS[int(rng.integers(len(OPERATORS)))]
        parts[place : place + 2] = [joined(sign, parts[place], parts[place + 1])]
    return parts[0].tokens
