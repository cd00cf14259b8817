"""Token ids to text, remembering where in the text each token starts."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

REPLACEMENT = "\ufffd"
"""What decoders print for bytes that are not (yet) a whole character."""


class DetokenisedText(NamedTuple):
    text: str
    token_offsets: tuple[int, ...]
    """Per token, where its characters start. A token that only completes a character
    begun by earlier ones shares that character's start."""


def detokenise(
    token_ids: Sequence[int], decode: Callable[[tuple[int, ...]], str]
) -> DetokenisedText:
    """Decodes a completion piece by piece.

    The pieces are joined to the text, so text and offsets cannot disagree. Each piece is
    decoded in the context of the piece before it, because many tokenizers write a token
    differently at the start of a text than inside one (a leading space, say).

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
        context_start, piece_start = piece_start, index + 1
    return DetokenisedText("".join(pieces), tuple(offsets))
