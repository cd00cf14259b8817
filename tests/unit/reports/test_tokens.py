"""A completion's tokens: nothing of its text is lost, and the odd ones stand out."""

import math
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forethought.reports.replay import heat, segments_of, tokens_of
from forethought.types import Completion, FinishReason, ParsedAction, Span


def completion(text: str, offsets: tuple[int, ...], logprob: float = -0.5) -> Completion:
    ids = tuple(range(7, 7 + len(offsets)))
    return Completion(ids, (logprob,) * len(ids), offsets, text, FinishReason.STOP, 1.0)


def test_tokens_have_their_own_text() -> None:
    tokens = tokens_of(completion("go up", (0, 2, 5)))
    assert [(token.text, token.id) for token in tokens] == [("go", 7), (" up", 8), ("", 9)]


def test_characters_before_the_first_token_are_not_lost() -> None:
    assert [token.text for token in tokens_of(completion("go up", (1, 2)))] == ["go", " up"]


def test_a_scripted_answer_has_none() -> None:
    assert tokens_of(completion("go", ())) == []


@given(st.text(), st.lists(st.integers(0, 20), min_size=1))
def test_the_texts_joined_are_the_text(text: str, offsets: list[int]) -> None:
    starts = tuple(sorted(min(offset, len(text)) for offset in offsets))
    assert "".join(token.text for token in tokens_of(completion(text, starts))) == text


@pytest.mark.parametrize("logprob", [-math.inf, math.nan])
def test_a_log_prob_that_is_no_number_is_left_out_and_hot(logprob: float) -> None:
    [token] = tokens_of(completion("go", (0,), logprob))
    assert token.logprob is None
    assert token.heat == 5


@pytest.mark.parametrize(
    ("probability", "expected"),
    [(1.0, 0), (0.96, 0), (0.94, 1), (0.79, 2), (0.49, 3), (0.19, 4), (0.04, 5)],
)
def test_the_less_probable_the_hotter(probability: float, expected: int) -> None:
    assert heat(log(probability)) == expected


def test_a_log_prob_just_above_zero_is_certain() -> None:
    """Rounding gives such; `exp` of a large one would overflow."""
    assert heat(1e-7) == 0
    assert heat(1e4) == 0


@pytest.mark.parametrize(
    ("thought", "action", "expected"),
    [
        pytest.param(Span(0, 2), Span(2, 5), [("thought", 0, 2), ("action", 2, 5)], id="as parsed"),
        pytest.param(Span(0, 0), Span(0, 5), [("action", 0, 5)], id="no thoughts"),
        pytest.param(
            Span(1, 2),
            Span(3, 4),
            [
                ("response", 0, 1),
                ("thought", 1, 2),
                ("response", 2, 3),
                ("action", 3, 4),
                ("response", 4, 5),
            ],
            id="tokens of neither",
        ),
        pytest.param(
            Span(0, 4), Span(2, 5), [("thought", 0, 2), ("action", 2, 5)], id="claimed twice"
        ),
        pytest.param(Span(-3, 9), Span(9, 12), [("thought", 0, 5)], id="beyond the tokens"),
    ],
)
def test_segments(thought: Span, action: Span, expected: list[tuple[str, int, int]]) -> None:
    parsed = ParsedAction("go", True, None, thought, action)
    assert [tuple(segment) for segment in segments_of(parsed, 5)] == expected


def test_no_tokens_have_no_segments() -> None:
    assert segments_of(ParsedAction("go", True, None, Span(0, 2), Span(2, 3)), 0) == []
