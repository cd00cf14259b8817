"""The arithmetic by which RL4VLM's public repository pays: Python's, without Python's `eval`.

There the agent's tokens are joined and evaluated as Python. So "*" typed twice is a
power, "/" typed twice divides and rounds down, digits side by side make one number,
signs may pile up, and fractions are floats (8/(3-8/3) is 23.99999999999999, not
24). `rules="reference"` must pay for the same texts; this reader does, in bounded
time and without executing anything.

Bound: integers above 2**1024 are refused. Over four cards no result of that size
comes back to 24: it needs at least three of them, and with the fourth it gives a
huge number, 0, 1 or -1.
"""

from functools import lru_cache
from itertools import permutations

from forethought.environments.cards.solver import Cards, Part, Tokens, simplicity, splits

MAX_CHARACTERS = 64
MAX_BITS = 1024

Number = int | float

BINARY = ("+", "-", "*", "/", "//", "**")


def evaluate_like_python(text: str) -> Number | None:
    """The real number that Python would compute for this formula.

    None where Python would fail, or give something else than a real number; also
    where the text is longer than any formula of these games, or a number too large.
    """
    tokens = _tokens(text.strip(" "))
    if tokens is None or len(text) > MAX_CHARACTERS:
        return None
    value, position = _sum(tokens, 0)
    return value if position == len(tokens) else None


def operate(operator: str, x: Number, y: Number) -> Number | None:
    """One operation of `BINARY` as Python does it; None where it fails or grows too large."""
    try:
        if operator == "**":
            result = _power(x, y)
        elif operator == "+":
            result = x + y
        elif operator == "-":
            result = x - y
        elif operator == "*":
            result = x * y
        elif operator == "/":
            result = x / y
        else:
            result = x // y
    except (ZeroDivisionError, OverflowError):
        return None
    if isinstance(result, int) and result.bit_length() > MAX_BITS:
        return None
    return result


def _power(x: Number, y: Number) -> Number | None:
    """x ** y, its size estimated before it is computed."""
    are_whole = isinstance(x, int) and isinstance(y, int)
    if are_whole and y > 0 and abs(x) > 1 and int(x).bit_length() * y > 2 * MAX_BITS:
        return None
    result: Number | complex = x**y
    return None if isinstance(result, complex) else result


def _tokens(text: str) -> list[str] | None:
    """Python's own tokens: the longest that fit. None for any foreign character."""
    tokens: list[str] = []
    glued = False
    for character in text[: MAX_CHARACTERS + 1]:
        if character in "0123456789":
            if glued and tokens[-1].isdigit():
                tokens[-1] += character
            else:
                tokens.append(character)
        elif character in "*/" and glued and tokens[-1] == character:
            tokens[-1] += character
        elif character in "+-*/()":
            tokens.append(character)
        elif character != " ":
            return None
        glued = character != " "
    return tokens


Reading = tuple[Number | None, int]
"""A value and the position after it; None once anything has failed."""


def _sum(tokens: list[str], position: int) -> Reading:
    value, position = _product(tokens, position)
    while value is not None and _at(tokens, position) in ("+", "-"):
        operator = tokens[position]
        right, position = _product(tokens, position + 1)
        value = None if right is None else operate(operator, value, right)
    return value, position


def _product(tokens: list[str], position: int) -> Reading:
    value, position = _signed(tokens, position)
    while value is not None and _at(tokens, position) in ("*", "/", "//"):
        operator = tokens[position]
        right, position = _signed(tokens, position + 1)
        value = None if right is None else operate(operator, value, right)
    return value, position


def _signed(tokens: list[str], position: int) -> Reading:
    """Signs bind looser than the power on their right: -2**2 is -4, 2**-2 is 0.25."""
    sign = _at(tokens, position)
    if sign in ("+", "-"):
        value, position = _signed(tokens, position + 1)
        return (-value if value is not None and sign == "-" else value), position
    base, position = _atom(tokens, position)
    if base is None or _at(tokens, position) != "**":
        return base, position
    exponent, position = _signed(tokens, position + 1)
    return (None if exponent is None else operate("**", base, exponent)), position


def _atom(tokens: list[str], position: int) -> Reading:
    token = _at(tokens, position)
    if token == "(":
        value, position = _sum(tokens, position + 1)
        return (value if _at(tokens, position) == ")" else None), position + 1
    if not token.isdigit() or (token[0] == "0" and token.strip("0")):
        return None, position
    return int(token), position + 1


def _at(tokens: list[str], position: int) -> str:
    return tokens[position] if position < len(tokens) else ""


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
"""Binding of the operation, and of what may be on its left and right without parentheses.
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
