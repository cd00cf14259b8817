"""Formulas that are tried and worked out: arithmetic by hand, and what an expert makes of it."""

import json
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from forethought.environments.cards.formula import evaluate_tokens
from forethought.environments.cards.formula_game import FormulaGame, points24
from forethought.environments.cards.formula_thoughts import HIGHEST, MOST_MISSES, misses, work_out
from forethought.environments.cards.solver import Tokens
from forethought.errors import ConfigError


def tokens_of(formula: str) -> Tokens:
    """Numbers and signs; the formula has spaces where two of them meet."""
    return tuple(formula.split())


@pytest.mark.parametrize(
    ("formula", "lines"),
    [
        pytest.param("9 * 3 - 8 + 1", ["9*3=27", "27-8=19", "19+1=20"], id="left to right"),
        pytest.param("1 + 8 * 3", ["8*3=24", "1+24=25"], id="products first"),
        pytest.param("( 1 + 8 ) * 3", ["1+8=9", "9*3=27"], id="parentheses before that"),
        pytest.param("2 * ( 3 - 8 )", ["3-8=-5", "2*(-5)=-10"], id="a negative right operand"),
        pytest.param("( 3 - 8 ) * 2", ["3-8=-5", "-5*2=-10"], id="a negative left operand"),
        pytest.param(
            "8 / ( 3 - 8 / 3 )", ["8/3=8/3", "3-(8/3)=1/3", "8/(1/3)=24"], id="broken numbers"
        ),
        pytest.param("- 3 + 10", ["-3+10=7"], id="a sign is no operation"),
    ],
)
def test_a_formula_is_worked_out(formula: str, lines: list[str]) -> None:
    operations = work_out(tokens_of(formula))
    assert [operation.text for operation in operations] == lines
    assert operations[-1].value == evaluate_tokens(tokens_of(formula))


def test_division_by_zero_has_no_working() -> None:
    with pytest.raises(ZeroDivisionError):
        work_out(tokens_of("4 / ( 5 - 5 )"))


@pytest.mark.parametrize("typed", ["", "(", "6 *", "( 4 -", "1 + 6 - 4", "1 + 6 - 4 * 1"])
def test_a_miss_uses_every_card_begins_as_typed_and_is_something_else(typed: str) -> None:
    points, start = (6, 4, 1, 1), tokens_of(typed)
    found = misses(points, start, 24, 60, np.random.default_rng(0))
    assert len(found) == len(set(found)) <= 60
    for formula in found:
        assert formula[: len(start)] == start
        assert Counter(token for token in formula if token.isdigit()) == Counter(map(str, points))
        assert evaluate_tokens(formula) != 24
        values = [operation.value for operation in work_out(formula)]
        assert all(value.denominator == 1 and abs(value) <= HIGHEST for value in values)


def test_misses_are_found_where_there_are_any() -> None:
    assert len(misses((7, 10, 1, 2), (), 24, 5, np.random.default_rng(0))) == 5
    assert misses((7, 10, 1, 2), (), 24, 0, np.random.default_rng(0)) == []


def searched(environment: FormulaGame) -> list[list[str]]:
    """The formulas of a searching expert's thoughts, step by step, each worked out rightly."""
    steps: list[list[str]] = []
    while True:
        expert_action = environment.expert()
        thoughts: str = json.loads(dict(expert_action.fields)["thoughts"])
        *tried, end = thoughts.split("; ")
        formulas: list[str] = []
        for line in tried:
            formula, _, working = line.partition(": ")
            for operation in working.split(", "):
                left, _, right = operation.partition("=")
                assert float(Fraction(right)) == pytest.approx(eval(left))  # noqa: S307
            formulas.append(formula)
        steps.append(formulas)
        assert end.endswith(f", I append '{expert_action.action}'")
        if environment.step(expert_action.action).terminated:
            return steps


def test_the_searching_expert_plays_as_the_other_does() -> None:
    recalls, searches = points24(image_size=64), points24(image_size=64, expert="search")
    misses_before = Counter[int]()
    for seed in range(40):
        recalls.reset(seed)
        searches.reset(seed)
        is_won = recalls.expert().action != "="
        while not searches.success() and searches.legal_actions():
            mine, other = searches.expert(), recalls.expert()
            assert mine.action == other.action
            searches.step(mine.action)
            recalls.step(other.action)
        searches.reset(seed)
        first = searched(searches)[0]
        assert searches.success() is is_won
        assert len(set(first)) == len(first)
        if is_won:
            misses_before[len(first) - 1] += 1
        else:
            assert len(first) == MOST_MISSES
    assert set(misses_before) == {0, 1, 2, 3}


def test_the_same_state_has_the_same_thoughts() -> None:
    environment = points24(image_size=64, expert="search")
    environment.reset(3)
    first = environment.expert()
    assert environment.expert() == first
    environment.reset(3)
    assert environment.expert() == first


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"expert": "guess"}, "recall or search"),
        ({"expert": "search", "rules": "reference"}, "recall under reference rules"),
    ],
)
def test_other_experts_are_refused(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        points24(image_size=64, **options)  # pyright: ignore[reportArgumentType]
