"""A completion as the tokens it was sampled as: their text, their odds, thought or action."""

from itertools import pairwise
from math import exp, isfinite
from typing import Literal, NamedTuple

from forethought.types import Completion, ParsedAction, Span

HEAT_LIMITS = (0.95, 0.8, 0.5, 0.2, 0.05)
"""A token is the hotter the less probable it was: heat 0 from the first of these on, 5
below the last."""

Part = Literal["thought", "action", "answer"]


class Token(NamedTuple):
    text: str
    """Empty for tokens without text of their own: special ones, parts of a character."""
    id: int
    logprob: float | None
    """None where it is not a number."""
    heat: int


class Segment(NamedTuple):
    """Neighbouring tokens, half-open."""

    part: Part
    """`answer` where the tokens belong neither to the thoughts nor to the action."""
    start: int
    stop: int


def tokens_of(completion: Completion) -> list[Token]:
    """Joined, the texts are the completion's text."""
    text, starts = completion.text, completion.token_offsets
    if not starts:
        return []
    ends = (*starts[1:], len(text))
    pieces = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    pieces[0] = text[: starts[0]] + pieces[0]
    return [
        Token(piece, token_id, _rounded(logprob), heat(logprob))
        for piece, token_id, logprob in zip(
            pieces, completion.token_ids, completion.logprobs, strict=True
        )
    ]


def segments_of(action: ParsedAction, tokens: int) -> list[Segment]:
    """The spans as a partition of all tokens, in order, without empty parts.

    A token that two spans claim belongs to the action.
    """
    parts: list[Part] = ["answer"] * tokens
    spans: tuple[tuple[Part, Span], ...] = (
        ("thought", action.thought_span),
        ("action", action.action_span),
    )
    for part, span in spans:
        for index in range(max(0, span.start), min(span.stop, tokens)):
            parts[index] = part
    starts = [i for i in range(tokens) if i == 0 or parts[i] != parts[i - 1]]
    return [Segment(parts[start], start, stop) for start, stop in pairwise([*starts, tokens])]


def heat(logprob: float) -> int:
    """0 for a token that was nearly certain to 5 for one that was a surprise.

    The hottest, too, where the log-prob is not a number.
    """
    probability = exp(min(logprob, 0.0)) if logprob == logprob else 0.0
    return sum(probability < limit for limit in HEAT_LIMITS)


def _rounded(logprob: float) -> float | None:
    return float(f"{logprob:.4g}") if isfinite(logprob) else None
