"""Random byte strings, a million of them, through everything that reads what a model wrote.

None may raise, and none may cost more than its length warrants. The slow test prints the
most processor time that any one call took: a figure for the documentation, measured again
where it is suspicious, since the machine may be busy; no test asserts a time.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from time import process_time
from typing import TypeVar, get_args

import pytest

from forethought.configs.parts import ResponseForm
from forethought.environments.cards.formula import (
    MAX_CHARACTERS,
    MAX_DIGITS,
    MAX_TOKENS,
    FormulaFailure,
    evaluate,
    tokenize,
)
from forethought.prompts.responses import parse_response
from forethought.types import Completion, FinishReason, ParsedAction

FEW, MANY = 20_000, 1_000_000
SUSPICIOUS_S = 1e-3

Result = TypeVar("Result")

ANSWER_PIECES = [
    *(b'"action"', b'"action": "', b'"thoughts": "', b'"', b'\\"', b"\\", b"\\u00", b"\\ud800"),
    *(
        b"```",
        b"</think>",
        b":",
        b" ",
        b"\n",
        b"\t",
        b"{",
        b"}",
        b"+",
        b"-",
        b"10",
        b"stand",
        b"\xff",
        b"\xe2\x98",
    ),
]
ENDS = [b"", b"", b'"action": "+"}', b'"action": "+" \n', b'{"action": "-"}' + b" " * 3000 + b"x"]
"""What noise is followed by: nothing, an action at the end, or one that is not at the end."""
FORMS: tuple[ResponseForm, ...] = get_args(ResponseForm)
FORMULA_PIECES = [
    *(b"0", b"1", b"7", b"10", b"999999", b"+", b"-", b"*", b"/", b"(", b")", b" "),
    *(b"1/", b"-(", b"999999*", b"=", b"e", b"\xb2"),
]


def byte_strings(pieces: list[bytes], count: int) -> Iterator[bytes]:
    """Noise of all bytes; what a grammar is made of, in disorder; and that with noise in it."""
    rng = random.Random(0)
    for index in range(count):
        if index % 4 == 0:
            yield rng.randbytes(rng.randrange(200))
            continue
        words = b"".join(rng.choices(pieces, k=rng.randrange(60 if index % 97 else 3000)))
        if index % 4 == 1 and words:
            middle = rng.randrange(len(words))
            words = words[:middle] + rng.randbytes(rng.randrange(4)) + words[middle + 1 :]
        yield words


def completion_of(content: bytes, index: int) -> Completion:
    """Decoded as a tokenizer decodes bytes, and cut into tokens at some places."""
    text = content.decode("utf-8" if index % 2 else "latin-1", errors="replace")
    offsets = tuple(range(0, len(text), 1 + index % 7))
    ids = (0,) * len(offsets)
    return Completion(ids, (0.0,) * len(ids), offsets, text, FinishReason.LENGTH, 1.0)


class Watch:
    """The most processor time of any call."""

    def __init__(self) -> None:
        self.slowest_s = 0.0

    def time(self, call: Callable[[], Result]) -> Result:
        started = process_time()
        result = call()
        taken_s = process_time() - started
        if taken_s > max(self.slowest_s, SUSPICIOUS_S):
            taken_s = min(taken_s, *(self._again(call) for _ in range(5)))
        self.slowest_s = max(self.slowest_s, taken_s)
        return result

    @staticmethod
    def _again(call: Callable[[], object]) -> float:
        started = process_time()
        call()
        return process_time() - started


def parse_everything(count: int) -> Watch:
    watch = Watch()
    valid: Counter[ResponseForm] = Counter()
    for index, content in enumerate(byte_strings(ANSWER_PIECES, count)):
        completion = completion_of(content + ENDS[index % len(ENDS)], index)
        for form in FORMS:
            parsed = watch.time(
                lambda: parse_response(completion, ("+", "-", "stand"), form=form)  # noqa: B023
            )
            check_parsed(parsed, completion)
            valid[form] += parsed.is_valid
    for form in FORMS:
        assert valid[form] > count / 100  # or the noise would never get as far as an action
    return watch


def check_parsed(parsed: ParsedAction, completion: Completion) -> None:
    assert parsed.is_valid == (parsed.failure is None)
    assert not parsed.is_valid or parsed.action in ("+", "-", "stand")
    assert len(parsed.action) <= len(completion.text)
    thought, action = parsed.thought_span, parsed.action_span
    assert 0 == thought.start <= thought.stop == action.start <= action.stop
    assert action.stop == len(completion.token_ids)


def evaluate_everything(count: int) -> Watch:
    watch = Watch()
    valued = 0
    for index, content in enumerate(byte_strings(FORMULA_PIECES, count)):
        text = content if index % 2 else content.decode("latin-1")
        value = watch.time(lambda: evaluate(text))  # noqa: B023
        check_value(value, text)
        valued += isinstance(value, Fraction)
    assert valued > count / 1000
    return watch


def check_value(value: Fraction | FormulaFailure, text: str | bytes) -> None:
    """Work is bounded by the length of what is read and by the digits of the numbers met."""
    if isinstance(value, FormulaFailure):
        return
    assert len(text) <= MAX_CHARACTERS
    tokens = tokenize(text)
    assert not isinstance(tokens, FormulaFailure)
    assert len(tokens) <= MAX_TOKENS
    digits = MAX_TOKENS * MAX_DIGITS
    assert max(abs(value.numerator), value.denominator) < 10**digits


def test_some_byte_strings() -> None:
    parse_everything(FEW)
    evaluate_everything(FEW)


@pytest.mark.slow
def test_a_million_byte_strings(capsys: pytest.CaptureFixture[str]) -> None:
    for name, run in (("parser", parse_everything), ("formula", evaluate_everything)):
        watch = run(MANY)
        with capsys.disabled():
            print(f"\n{name}: {MANY:,} byte strings, slowest call {1e3 * watch.slowest_s:.2f} ms")
