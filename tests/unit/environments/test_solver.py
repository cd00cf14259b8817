"""The solver against brute force, and the expert from states that it would never choose."""

import random
from fractions import Fraction
from itertools import permutations, product

import pytest

from forethought.environments.cards.formula import (
    START,
    FormulaFailure,
    Levels,
    evaluate_tokens,
    next_tokens,
    push,
    read,
    value_of,
)
from forethought.environments.cards.solver import (
    Tokens,
    completion,
    is_solvable,
    reachable,
    solutions,
)


def every_value(cards: tuple[int, ...], operators: str = "+-*/") -> set[Fraction]:
    """Values of all formulas over the cards: five bracketings, all orders, all operators."""
    if len(cards) == 1:
        return {Fraction(cards[0])}
    values: set[Fraction] = set()
    for order in set(permutations(cards)):
        for cut in range(1, len(cards)):
            lefts, rights = every_value(order[:cut], operators), every_value(order[cut:], operators)
            for x, y in product(lefts, rights):
                for operator in operators:
                    if operator != "/":
                        values.add({"+": x + y, "-": x - y, "*": x * y}[operator])
                    elif y:
                        values.add(x / y)
    return values


@pytest.mark.parametrize("cards", [(7,), (2, 6), (1, 1), (3, 8, 8), (1, 5, 10)])
def test_reachable_is_brute_force(cards: tuple[int, ...]) -> None:
    assert set(reachable(cards, "+-*/")) == every_value(cards)
    for value, parts in reachable(cards, "+-*/").items():
        assert all(evaluate_tokens(part.tokens) == value for part in parts)


@pytest.mark.parametrize(
    "cards",
    [(3, 3, 8, 8), (1, 5, 5, 5), (4, 4, 10, 10), (1, 1, 1, 1), (1, 6, 6, 7), (2, 7, 8, 9)],
)
def test_solvable_is_brute_force(cards: tuple[int, ...]) -> None:
    expected = 24 in every_value(cards)
    assert is_solvable(cards, 24) == expected
    found = solutions(cards, 24)
    assert bool(found) == expected
    assert len(set(found)) == len(found)
    for formula in found:
        assert evaluate_tokens(formula) == 24
        assert sorted(int(token) for token in formula if token.isdigit()) == list(cards)
    assert [len(formula) for formula in found] == sorted(len(formula) for formula in found)


def test_all_solutions_by_hand() -> None:
    assert ["".join(formula) for formula in solutions((3, 3, 8, 8), 24)] == ["8/(3-8/3)"]
    assert ["".join(formula) for formula in solutions((4, 4, 10, 10), 24)] == ["(10*10-4)/4"]
    assert ["".join(formula) for formula in solutions((2, 6), 12, "+*")] == ["2*6", "6*2"]


@pytest.mark.parametrize(
    ("cards", "typed", "rest"),
    [
        ((3, 3, 8, 8), "8", "/(3-8/3)"),
        ((3, 3, 8, 8), "(", "8/(3-8/3))"),
        ((3, 3, 8, 8), "((", "8/(3-8/3)))"),
        ((3, 3, 8, 8), "(8)/(3-(", "8/3))"),
        ((3, 3, 8, 8), "8/(3-8/3)", ""),
        ((3, 3, 8, 8), "8/(3-8/3", ")"),
        ((3, 3, 8, 8), "8+", None),
        ((3, 3, 8, 8), "8 8", None),
        ((1, 1, 1, 1), "", None),
        ((1, 1, 1, 1), "(1+", None),
        ((1, 2, 3, 4), "-", "(-(1*2*3*4))"),
        ((1, 2, 3, 4), "-(", "-(1*2*3*4))"),
        ((1, 2, 3, 4), "-(-", "(1*2*3*4))"),
        ((3, 3, 8, 8), "-", "(8/(8/3-3))"),
        ((2, 6, 8, 9), "2*(-9*(-8)", "/6)"),
    ],
)
def test_completion_by_hand(cards: tuple[int, ...], typed: str, rest: str | None) -> None:
    tokens = tuple(typed.replace(" ", ""))
    found = completion(cards, tokens, 24)
    assert (None if found is None else "".join(found)) == rest
    if found is not None:
        assert evaluate_tokens(tokens + found) == 24


def random_prefix(cards: tuple[int, ...], choices: random.Random) -> tuple[Tokens, list[str]]:
    """Tokens that keep to the grammar, from nobody's plan, and the numbers left over."""
    typed: Tokens = ()
    left = [str(card) for card in cards]
    levels = START
    for _ in range(choices.randrange(9)):
        token = choices.choice(next_tokens(levels, left))
        if token == "=":
            break
        after = push(levels, token)
        assert not isinstance(after, FormulaFailure)
        typed, levels = (*typed, token), after
        if token.isdigit():
            left.remove(token)
    return typed, left


def exists(levels: Levels, left: list[str], depth: int) -> bool:
    """Whether any completion of at most `depth` tokens gives 24: plain search."""
    if not left and value_of(levels) == 24:
        return True
    if depth == 0:
        return False
    for token in next_tokens(levels, left):
        after = push(levels, token) if token != "=" else FormulaFailure.MISPLACED
        rest = [number for number in left if number != token] + [token] * (left.count(token) - 1)
        if not isinstance(after, FormulaFailure) and exists(after, rest, depth - 1):
            return True
    return False


def test_completion_from_random_prefixes() -> None:
    choices = random.Random(5)
    reached = 0
    for _ in range(150):
        cards = tuple(sorted(choices.choices(range(1, 11), k=4)))
        typed, left = random_prefix(cards, choices)
        rest = completion(cards, typed, 24)
        if rest is not None:
            reached += 1
            assert evaluate_tokens(typed + rest) == 24
            used = [token for token in typed + rest if token.isdigit()]
            assert sorted(map(int, used)) == list(cards)
        elif len(left) <= 2:
            levels = read(typed)
            assert not isinstance(levels, FormulaFailure)
            assert not exists(levels, left, 6), (cards, typed)
    assert reached > 30
