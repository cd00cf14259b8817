"""Which formulas over given cards reach a target: all of them, the simplest, the next token.

Every set of cards has a table of the values it can reach. Larger sets are never
enumerated value by value: a formula's last operation splits the cards in two, and
for each value of one part the partner that the target demands is looked up in the
table of the other. So one deal of four cards takes well under a millisecond.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from forethought.environments.cards.formula import (
    FormulaFailure,
    Levels,
    operand,
    push,
    read,
    value_of,
)

Tokens = tuple[str, ...]
Cards = tuple[int, ...]
"""Points of the cards, sorted: a multiset."""

SUM, PRODUCT, ATOM = 0, 1, 2
"""How tightly a formula holds together: its outermost operation."""


class Part(NamedTuple):
    """One way to write a value."""

    tokens: Tokens
    binding: int

    def within(self, binding: int) -> Tokens:
        """The tokens, in parentheses where the surroundings bind tighter."""
        return self.tokens if self.binding >= binding else ("(", *self.tokens, ")")


def simplicity(part: Part) -> tuple[int, Tokens]:
    """Sorts short formulas first; equally short ones always in the same order."""
    return len(part.tokens), part.tokens


def splits(cards: Cards) -> Iterator[tuple[Cards, Cards]]:
    """Every way to part the cards in two, both orders, equal parts once."""
    seen: set[Cards] = set()
    for choice in range(1, 2 ** len(cards) - 1):
        left = tuple(card for i, card in enumerate(cards) if choice >> i & 1)
        if left not in seen:
            seen.add(left)
            yield left, tuple(card for i, card in enumerate(cards) if not choice >> i & 1)


@lru_cache(maxsize=4096)
def reachable(cards: Cards, operators: str) -> dict[Fraction, tuple[Part, ...]]:
    """Every value of a formula that uses each card once, with all ways to write it."""
    if len(cards) == 1:
        return {Fraction(cards[0]): (Part((str(cards[0]),), ATOM),)}
    found: dict[Fraction, set[Part]] = {}
    for left, right in splits(cards):
        for x, left_parts in reachable(left, operators).items():
            for y, right_parts in reachable(right, operators).items():
                for operator in operators:
                    value = _apply(operator, x, y)
                    if value is not None:
                        found.setdefault(value, set()).update(
                            joined(operator, a, b) for a in left_parts for b in right_parts
                        )
    return {value: tuple(sorted(parts, key=simplicity)) for value, parts in found.items()}


@lru_cache(maxsize=4096)
def solutions(cards: Cards, target: int, operators: str = "+-*/") -> tuple[Tokens, ...]:
    """All formulas that use each card once and equal the target, simplest first.

    Formulas that differ only by parentheses without effect count once; `cards` is
    sorted by the caller, so that every order of a deal shares one entry.
    """
    found: set[Part] = set()
    for left, right in splits(cards):
        partners = reachable(right, operators)
        for x, left_parts in reachable(left, operators).items():
            for operator in operators:
                y = _partner(operator, x, Fraction(target))
                right_parts = partners.get(y, ()) if y is not None else ()
                found.update(joined(operator, a, b) for a in left_parts for b in right_parts)
    return tuple(part.tokens for part in sorted(found, key=simplicity))


def is_solvable(cards: Cards, target: int, operators: str = "+-*/") -> bool:
    """Whether any formula over the (sorted) cards equals the target."""
    return any(
        _partner(operator, x, Fraction(target)) in reachable(right, operators)
        for left, right in splits(cards)
        for x in reachable(left, operators)
        for operator in operators
    )


@lru_cache(maxsize=4096)
def completion(cards: Cards, typed: Tokens, target: int, operators: str = "+-*/") -> Tokens | None:
    """The tokens that bring a partial formula to the target, few of them; None if none do.

    Args:
        cards: all cards of the deal, sorted; those in `typed` are among them.
        typed: the tokens so far, whoever wrote them.
    """
    for formula in solutions(cards, target, operators):
        if formula[: len(typed)] == typed:
            return formula[len(typed) :]
    levels = read(typed)
    if isinstance(levels, FormulaFailure):
        return None
    numbers = [int(token) for token in typed if token.isdigit()]
    if not numbers:
        return _completion_of_signs(cards, typed, target, operators)
    return _search(levels, _without(cards, numbers), Fraction(target), operators, {})


def _completion_of_signs(cards: Cards, typed: Tokens, target: int, operators: str) -> Tokens | None:
    """Nothing but minus signs and opening parentheses yet: a whole formula must follow,
    equal to the target or, after an odd number of signs, to its opposite."""
    formulas = solutions(cards, target, operators)
    if not formulas:
        return None
    rest = formulas[0]
    if typed.count("-") % 2 == 1:
        opposite = solutions(cards, -target, operators)
        rest = opposite[0] if opposite else ("-", "(", *rest, ")")
    if typed[-1:] == ("-",):
        rest = ("(", *rest, ")")
    return (*rest, *(")",) * typed.count("("))


def _without(cards: Cards, numbers: list[int]) -> Cards:
    left = list(cards)
    for number in numbers:
        left.remove(number)
    return tuple(left)


def _search(
    levels: Levels,
    cards: Cards,
    target: Fraction,
    operators: str,
    known: dict[tuple[Levels, Cards], Tokens | None],
) -> Tokens | None:
    """The shortest completion. A missing operand is tried as every value that some of
    the cards can reach, written in parentheses."""
    key = levels, cards
    if key not in known:
        best: Tokens | None = None
        if levels[-1].awaiting is None and not cards:
            best = _closed(levels, target)
        else:
            for tokens, after, rest in _continuations(levels, cards, operators):
                tail = _search(after, rest, target, operators, known)
                if tail is not None and (best is None or len(tokens + tail) < len(best)):
                    best = tokens + tail
        known[key] = best
    return known[key]


def _closed(levels: Levels, target: Fraction) -> Tokens | None:
    """Closes all open parentheses, if the value is then the target."""
    tokens = (")",) * (len(levels) - 1)
    for token in tokens:
        after = push(levels, token)
        if isinstance(after, FormulaFailure):
            return None
        levels = after
    return tokens if value_of(levels) == target else None


def _continuations(
    levels: Levels, cards: Cards, operators: str
) -> Iterator[tuple[Tokens, Levels, Cards]]:
    """What may be written next: an operator or ")" after an operand, else an operand."""
    if levels[-1].awaiting is None:
        steps = [((token,), push(levels, token), cards) for token in (*operators, ")")]
    else:
        steps = [
            (tokens, operand(levels, value), rest)
            for chosen, rest in (*splits(cards), (cards, ()))
            if chosen
            for tokens, value in _operands(chosen, operators)
        ]
        if "-" in operators:
            steps.append((("-",), push(levels, "-"), cards))
    for tokens, after, rest in steps:
        if not isinstance(after, FormulaFailure):
            yield tokens, after, rest


@lru_cache(maxsize=1024)
def _operands(cards: Cards, operators: str) -> tuple[tuple[Tokens, Fraction], ...]:
    """What may stand as one operand for exactly these cards: each value, and its opposite
    by a minus sign where no formula without one reaches it: 2*(-9*(-8)/6)."""
    values = reachable(cards, operators)
    operands = [(parts[0].within(ATOM), value) for value, parts in values.items()]
    if "-" in operators:
        operands += [
            (("(", "-", *parts[0].within(PRODUCT), ")"), -value)
            for value, parts in values.items()
            if -value not in values
        ]
    return tuple(operands)


def _apply(operator: str, x: Fraction, y: Fraction) -> Fraction | None:
    if operator == "+":
        return x + y
    if operator == "-":
        return x - y
    if operator == "*":
        return x * y
    return x / y if y else None


def _partner(operator: str, x: Fraction, target: Fraction) -> Fraction | None:
    """The y for which x operator y is the target, where there is exactly one."""
    if operator == "+":
        return target - x
    if operator == "-":
        return x - target
    if operator == "*":
        return target / x if x else None
    return x / target if x and target else None


def joined(operator: str, left: Part, right: Part) -> Part:
    """Writes an operation with no more parentheses than its value needs:
    a+(b-c) becomes a+b-c, a*(b/c) becomes a*b/c."""
    binding = SUM if operator in "+-" else PRODUCT
    tighter = binding + 1 if operator in "-/" else binding
    return Part((*left.within(binding), operator, *right.within(tighter)), binding)
