"""Token ids to text, remembering where in the text each token starts."""

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import NamedTuple

REPLACEMENT = "\ufffd"
"""What decoders print for bytes that are not (yet) a whole character."""


class DetokenizedText(NamedTuple):
    text: str
    token_offsets: tuple[int, ...]
    """Per token, where its characters start. A token that only completes a character
    begun by earlier ones shares that character's start."""


def detokenize(
    token_ids: Sequence[int], decode: Callable[[tuple[int, ...]], str]
) -> DetokenizedText:
    """Decodes a completion piece by piece, so as to know where each piece starts.

    A piece is decoded together with the last piece that had text: many tokenizers write a
    token differently at the start of a text than inside one (without its space, say).

    Args:
        token_ids: the sampled ids.
        decode: ids to text with special tokens left out; best memoised, the windows are short.
    """
    pieces: list[str] = []
    offsets: list[int] = []
    length = context_start = piece_start = 0
    for index in range(len(token_ids)):
        offsets.append(length)
        is_last = index == len(token_ids) - 1
        before = decode(tuple(token_ids[context_start:piece_start]))
        window = decode(tuple(token_ids[context_start : index + 1]))
        if window.endswith(REPLACEMENT) and not is_last:
            continue  # a character is still incomplete: wait for its other tokens
        piece = window[len(before) :]
        pieces.append(piece)
        length += len(piece)
        if piece:
            context_start = piece_start
        piece_start = index + 1
    text = decode(tuple(token_ids))
    if "".join(pieces) == text:
        return DetokenizedText(text, tuple(offsets))
    return DetokenizedText(text, _offsets_by_prefixes(token_ids, text, decode))


def _offsets_by_prefixes(
    token_ids: Sequence[int], text: str, decode: Callable[[tuple[int, ...]], str]
) -> tuple[int, ...]:
    """For text whose characters depend on tokens far behind them, as bytes that are no UTF-8
    make it in some tokenizers: a token starts where the text decoded so far parts from the
    whole. Quadratic, hence the exception."""
    offsets: list[int] = []
    start = 0
    for index in range(len(token_ids)):
        prefix = decode(tuple(token_ids[:index]))
        agreeing = (a == b for a, b in zip(prefix, text, strict=False))
        start = max(start, sum(takewhile(bool, agreeing)))
        offsets.append(start)
    return tuple(offsets)
