"""Formulas of whole numbers, + - * / and parentheses, read token by token in exact fractions.

A formula is read by a machine that takes one token at a time and is always in one
of three conditions: waiting for an operand, complete, or refused. So the same few
lines judge a finished formula, a formula half typed by an agent, and hostile text.
Nothing is ever executed, nothing recurses, and every input has a result within a
millisecond: length, depth and digits are bounded, hence numerators and denominators
too (at most 64 numbers of 6 digits meet).

Grammar, as written on paper: a minus sign may open a formula or a parenthesis
("-3+27"), numbers never stand side by side, a product needs its "*".
"""

from collections.abc import Iterable
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

MAX_CHARACTERS = 256
MAX_TOKENS = 64
MAX_DEPTH = 32
MAX_DIGITS = 6

OPERATORS = "+-*/"


class FormulaFailure(StrEnum):
    """Why a text has no value."""

    TOO_LONG = "too long"
    TOO_DEEP = "too deep"
    UNKNOWN_SYMBOL = "unknown symbol"
    MISPLACED = "misplaced token"
    """A token where the grammar allows none of its kind."""
    DIVISION_BY_ZERO = "division by zero"
    INCOMPLETE = "incomplete"
    """An operand or a closing parenthesis is missing."""


class Level(NamedTuple):
    """What has been read between one pair of parentheses, or outside all of them."""

    total: Fraction
    """Sum of the finished terms."""
    term: Fraction
    """The term being multiplied up, sign included; 0 while there is none."""
    awaiting: str | None
    """None: an operand has just ended. "": nothing read yet. Else the operator that
    awaits its right operand."""


Levels = tuple[Level, ...]
"""A partial formula, outermost level first."""

START: Levels = (Level(Fraction(0), Fraction(0), ""),)


def push(levels: Levels, token: str) -> Levels | FormulaFailure:
    """The partial formula after one more token."""
    level = levels[-1]
    operand_ended = level.awaiting is None
    if token.isascii() and token.isdigit():
        if len(token) > MAX_DIGITS:
            return FormulaFailure.TOO_LONG
        return operand(levels, Fraction(int(token)))
    if token == "(":
        if operand_ended:
            return FormulaFailure.MISPLACED
        return levels + START if len(levels) < MAX_DEPTH else FormulaFailure.TOO_DEEP
    if token == ")":
        if not operand_ended or len(levels) == 1:
            return FormulaFailure.MISPLACED
        return operand(levels[:-1], level.total + level.term)
    if token not in OPERATORS or len(token) != 1:
        return FormulaFailure.UNKNOWN_SYMBOL
    if not operand_ended:
        opens = level.awaiting == "" and token == "-"
        return (*levels[:-1], level._replace(awaiting="-")) if opens else FormulaFailure.MISPLACED
    if token in "+-":
        return (*levels[:-1], Level(level.total + level.term, Fraction(0), token))
    return (*levels[:-1], level._replace(awaiting=token))


def operand(levels: Levels, value: Fraction) -> Levels | FormulaFailure:
    """The partial formula after a number, or after a whole parenthesis of that value."""
    total, term, awaiting = levels[-1]
    if awaiting is None:
        return FormulaFailure.MISPLACED
    if awaiting == "*":
        term *= value
    elif awaiting == "/":
        if value == 0:
            return FormulaFailure.DIVISION_BY_ZERO
        term /= value
    else:
        term = -value if awaiting == "-" else value
    return (*levels[:-1], Level(total, term, None))


def read(tokens: Iterable[str]) -> Levels | FormulaFailure:
    """The partial formula that these tokens make."""
    levels: Levels | FormulaFailure = START
    for position, token in enumerate(tokens):
        if position >= MAX_TOKENS:
            return FormulaFailure.TOO_LONG
        levels = push(levels, token)
        if isinstance(levels, FormulaFailure):
            return levels
    return levels


def value_of(levels: Levels) -> Fraction | FormulaFailure:
    """The value of a formula that has ended."""
    level = levels[-1]
    if len(levels) > 1 or level.awaiting is not None:
        return FormulaFailure.INCOMPLETE
    return level.total + level.term


def evaluate_tokens(tokens: Iterable[str]) -> Fraction | FormulaFailure:
    """The value of a formula given as tokens: "1", "1" are two numbers, never 11."""
    levels = read(tokens)
    return levels if isinstance(levels, FormulaFailure) else value_of(levels)


def evaluate(text: str | bytes) -> Fraction | FormulaFailure:
    """The value of a formula given as text, whatever the text."""
    tokens = tokenize(text)
    return tokens if isinstance(tokens, FormulaFailure) else evaluate_tokens(tokens)


def tokenize(text: str | bytes) -> tuple[str, ...] | FormulaFailure:
    """Splits a text into numbers (as many digits as follow each other) and signs."""
    if len(text) > MAX_CHARACTERS:
        return FormulaFailure.TOO_LONG
    tokens: list[str] = []
    after_digit = False
    for character in text.decode("latin-1") if isinstance(text, bytes) else text:
        is_digit = character in "0123456789"
        if is_digit and after_digit:
            tokens[-1] += character
        elif is_digit or character in "+-*/()":
            tokens.append(character)
        elif character != " ":
            return FormulaFailure.UNKNOWN_SYMBOL
        after_digit = is_digit
    return tuple(tokens)


def next_tokens(levels: Levels, numbers: Iterable[str]) -> tuple[str, ...]:
    """Tokens that may follow, given the numbers that may be used, in a fixed order.

    "=" ends a complete formula; a number whose division would be by zero is left out.
    """
    candidates = (*dict.fromkeys(numbers), *OPERATORS, "(", ")")
    fitting = tuple(
        token for token in candidates if not isinstance(push(levels, token), FormulaFailure)
    )
    return fitting if isinstance(value_of(levels), FormulaFailure) else (*fitting, "=")
