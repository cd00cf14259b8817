"""The reference rules pay by Python's arithmetic: compared with Python's own grammar."""

import ast
import operator
import time
import warnings
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forethought.environments.cards.python_arithmetic import (
    MAX_BITS,
    evaluate_like_python,
    python_solution,
    python_values,
)

OPERATIONS: dict[type[ast.AST], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def oracle(node: ast.AST) -> int | float | None:
    """The value of a tree that Python's own parser made; powers bounded like ours."""
    if isinstance(node, ast.Expression):
        return oracle(node.body)
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int) else None
    if isinstance(node, ast.UnaryOp):
        value = oracle(node.operand)
        return None if value is None else OPERATIONS[type(node.op)](value)
    if not isinstance(node, ast.BinOp):
        return None
    left, right = oracle(node.left), oracle(node.right)
    if left is None or right is None:
        return None
    try:
        if isinstance(node.op, ast.Pow):
            if isinstance(left, int) and isinstance(right, int) and abs(left) > 1 and right > 0:
                bits = left.bit_length() * right
                if bits > 2 * MAX_BITS:
                    return None
            value = left**right
        else:
            value = OPERATIONS[type(node.op)](left, right)
    except ArithmeticError:
        return None
    if isinstance(value, complex):
        return None
    return None if isinstance(value, int) and value.bit_length() > MAX_BITS else value


def by_python(text: str) -> int | float | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return oracle(ast.parse(text.strip(" "), mode="eval"))
    except (SyntaxError, RecursionError, MemoryError):
        return None


@given(st.lists(st.sampled_from(["1", "2", "3", "8", "10", *"+-*/()", " "]), max_size=14))
@example(["-", "2", "*", "*", "2"])
@example(["2", "*", "*", "-", "1"])
@example(["2", "*", "*", "3", "*", "*", "2"])
@example(["8", "/", "(", "3", "-", "8", "/", "3", ")"])
@example(["(", "-", "8", ")", "*", "*", "(", "1", "/", "2", ")"])
@example(["1", "0", "/", "/", "3"])
@example(["1", " ", "1"])
@example(["*", " ", "*"])
@example(["2", "(", "3", ")"])
def test_agrees_with_pythons_grammar(tokens: list[str]) -> None:
    text = "".join(tokens)
    ours, theirs = evaluate_like_python(text), by_python(text)
    assert ours == theirs
    assert type(ours) is type(theirs)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5++7", 12),
        (" 5+7", 12),
        ("12", 12),
        ("2**3", 8),
        ("7//2", 3),
        ("-7//2", -4),
        ("8/(3-8/3)", 24 - 2**-47 * 2),
        ("()", None),
        ("5(7)", None),
        ("1/0", None),
        ("0**-1", None),
        ("007", None),
        ("00", 0),
        ("1e3", None),
        ("__import__", None),
        ("9**9**9**9", None),
        ("(" * 10_000, None),
        ("9" * 65, None),
    ],
)
def test_value_by_hand(text: str, value: float | None) -> None:
    started = time.perf_counter()
    result = evaluate_like_python(text)
    assert time.perf_counter() - started < 0.05
    assert result == (pytest.approx(value, abs=1e-12) if value is not None else None)
    if text == "8/(3-8/3)":
        assert result != 24  # the float that the public repository refuses


@given(st.text(max_size=100))
def test_any_text_is_answered(text: str) -> None:
    result = evaluate_like_python(text)
    assert result is None or isinstance(result, int | float)


@pytest.mark.parametrize(
    "cards",
    [
        pytest.param((1, 1, 8, 9), id="-(-191//8): glued digits, rounded down"),
        pytest.param((1, 6, 6, 7), id="-(-166//7)"),
        pytest.param((2, 2, 2, 9), id="not solvable in fractions"),
        pytest.param((3, 3, 8, 8), id="8/(3-8/3) is not 24 in floats"),
    ],
)
def test_what_only_python_makes_24(cards: tuple[int, ...]) -> None:
    formula = python_solution(cards, 24)
    assert formula is not None
    assert evaluate_like_python("".join(formula)) == 24
    assert sorted(int(token) for token in formula if token.isdigit()) == list(cards)
    assert len(formula) < 20  # "=" must still fit


@pytest.mark.parametrize("cards", [(1, 1, 1, 1), (2, 2, 2, 2), (10, 10, 10, 10)])
def test_what_not_even_python_makes_24(cards: tuple[int, ...]) -> None:
    assert python_solution(cards, 24) is None


def test_every_tabulated_value_is_what_its_text_is_worth() -> None:
    for cards in ((2, 3), (1, 8), (3, 3, 8), (1, 9, 10)):
        for (is_float, value), part in python_values(cards).items():
            worth = evaluate_like_python("".join(part.tokens))
            assert worth == value
            assert isinstance(worth, float) == is_float
