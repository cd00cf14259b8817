"""The simplest formula that RL4VLM's public repository pays for, where there is one.

Under `rules="reference"` four cards may also be glued together, raised to powers and
divided with rounding, and floats must hit 24 exactly. Every value that can be reached
so is tabulated per set of cards; the tables stay small (at most 700 values for three
cards), so that all 715 deals take about a second.
"""

from functools import lru_cache
from itertools import permutations

from forethought.environments.cards.python_arithmetic import BINARY, Number, operate
from forethought.environments.cards.solver import Cards, Part, Tokens, simplicity, splits

SUM, PRODUCT, SIGN, POWER, ATOM = range(5)
"""How tightly an expression holds together, in Python's grammar."""

BINDING = {
    "+": (SUM, SUM, PRODUCT),
    "-": (SUM, SUM, PRODUCT),
    "*": (PRODUCT, PRODUCT, SIGN),
    "/": (PRODUCT, PRODUCT, SIGN),
    "//": (PRODUCT, PRODUCT, SIGN),
    "**": (POWER, ATOM, SIGN),
}
"""Of the operation, and of what may stand on its left and right without parentheses.
Nothing is regrouped: floats and rounded quotients depend on the order."""

Values = dict[tuple[bool, Number], Part]
"""The simplest way to write each value; 24 and 24.0 are two values, for what follows
may treat them differently."""


@lru_cache(maxsize=2048)
def python_solution(cards: Cards, target: int) -> Tokens | None:
    """The simplest formula over all (sorted) cards that Python makes equal to the target."""
    parts = [part for (_, value), part in _glued(cards).items() if value == target]
    for left, right in splits(cards):
        for (_, x), left_part in python_values(left).items():
            for (_, y), right_part in python_values(right).items():
                for operator in BINARY:
                    value = operate(operator, x, y)
                    if value == target:
                        parts.append(_joined(operator, left_part, right_part))
                    elif value == -target:
                        parts.append(_negated(_joined(operator, left_part, right_part)))
    return min(parts, key=simplicity).tokens if parts else None


@lru_cache(maxsize=1024)
def python_values(cards: Cards) -> Values:
    """Every value that Python can make of all the (sorted) cards, with either sign."""
    values: Values = {}
    for (_, value), part in _glued(cards).items():
        _note(values, value, part)
    for left, right in splits(cards):
        for (_, x), left_part in python_values(left).items():
            for (_, y), right_part in python_values(right).items():
                for operator in BINARY:
                    value = operate(operator, x, y)
                    if value is not None:
                        _note(values, value, _joined(operator, left_part, right_part))
    return values


def _glued(cards: Cards) -> Values:
    """Numbers made of the cards' digits side by side."""
    orders = sorted({tuple(str(card) for card in order) for order in permutations(cards)})
    return {(False, int("".join(order))): Part(order, ATOM) for order in orders}


def _note(values: Values, value: Number, part: Part) -> None:
    """Keeps the simplest way to write a value, and to write its opposite."""
    for number, written in ((value, part), (-value, _negated(part))):
        key = isinstance(number, float), number
        known = values.get(key)
        if known is None or simplicity(written) < simplicity(known):
            values[key] = written


def _negated(part: Part) -> Part:
    return Part(("-", *part.within(SIGN)), SIGN)


def _joined(operator: str, left: Part, right: Part) -> Part:
    binding, on_the_left, on_the_right = BINDING[operator]
    return Part((*left.within(on_the_left), *operator, *right.within(on_the_right)), binding)
