"""What tokens are as text: where each one starts in a completion, and the bytes it adds.

Bytes, not characters: a character may be several tokens, each of which alone is no text.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

REPLACEMENT = "\ufffd"
"""What decoders print for bytes that are not (yet) a whole character."""


class DetokenizedText(NamedTuple):
    """A completion's text, and where in it each token starts."""

    text: str
    token_offsets: tuple[int, ...]
    """Per token, where its characters start. A token that only completes a character
    begun by earlier ones shares that character's start."""


class GrowingText:
    """A completion's text, token by token, and where each token starts in it.

    A piece is decoded together with the last piece that had text: many tokenizers write a
    token differently at the start of a text than inside one (without its space, say).
    """

    def __init__(self, decode: Callable[[tuple[int, ...]], str]) -> None:
        """
        Args:
            decode: ids to text with special tokens left out; best memoised, the windows are short.
        """
        self._decode = decode
        self.ids: list[int] = []
        self.text = ""
        self.offsets: list[int] = []
        self.whole = 0
        """Tokens whose characters are complete; those after them have no text yet."""
        self._context_start = 0

    def add(self, token: int, *, is_last: bool = False) -> None:
        """Takes the next token.

        Args:
            is_last: a character that is incomplete with it stays so.
        """
        self.ids.append(token)
        self.offsets.append(len(self.text))
        before = self._decode(tuple(self.ids[self._context_start : self.whole]))
        window = self._decode(tuple(self.ids[self._context_start :]))
        if window.endswith(REPLACEMENT) and not is_last:
            return  # a character is still incomplete: wait for its other tokens
        piece = window[len(before) :]
        self.text += piece
        if piece:
            self._context_start = self.whole
        self.whole = len(self.ids)

    def until(self, end: int) -> int:
        """How many of the first tokens are complete and have no character behind `end`."""
        return bisect_right([*self.offsets[: self.whole], len(self.text)], end) - 1


def detokenize(
    token_ids: Sequence[int], decode: Callable[[tuple[int, ...]], str]
) -> DetokenizedText:
    """Decodes a completion piece by piece, so as to know where each piece starts.

    Args:
        token_ids: the sampled ids.
        decode: as `GrowingText` has it.
    """
    growing = GrowingText(decode)
    for index, token in enumerate(token_ids):
        growing.add(token, is_last=index == len(token_ids) - 1)
    text = decode(tuple(token_ids))
    if growing.text == text:
        return DetokenizedText(text, tuple(growing.offsets))
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


UNKNOWN = b"\xff"
"""What a token adds whose bytes nobody knows: never a part of any text in UTF-8."""
_FALLBACK = re.compile(r"<0x([0-9A-Fa-f]{2})>")
"""How vocabularies of characters spell the single bytes of other characters."""


class TokenBytes:
    """The bytes of every token, looked up by what they begin with."""

    def __init__(
        self,
        vocabulary: int,
        anchor: int,
        decode: Callable[[Sequence[int]], str],
        spell: Callable[[int], str],
    ) -> None:
        """
        Args:
            vocabulary: tokens are 0 … vocabulary - 1.
            anchor: an ordinary token to stand before each: many tokenizers write a token
                differently at the start of a text.
            decode: ids to text, special tokens left out.
            spell: a token as the vocabulary has it; read where it alone is no text.
        """
        start = len(decode([anchor]))
        self.of_id: list[bytes] = []
        self.is_fallback: set[int] = set()
        """Tokens for single bytes, of which a whole run is decoded together: if it is no UTF-8,
        each of its bytes becomes U+FFFD, whatever it was."""
        by_bytes: dict[bytes, list[int]] = {}
        for token in range(vocabulary):
            text, spelled = decode([anchor, token])[start:], spell(token)
            found = _FALLBACK.fullmatch(spelled)
            if found is not None and text != spelled:
                self.is_fallback.add(token)
                own = bytes.fromhex(found[1])
            else:
                own = _bytes_of(text, spelled)
            self.of_id.append(own)
            if own and own != UNKNOWN:  # Special tokens have none.
                by_bytes.setdefault(own, []).append(token)
        self._by_bytes = by_bytes
        self._sorted = sorted(by_bytes)
        self.leading_into = lru_cache(maxsize=1 << 14)(self._leading_into)
        self.matching = lru_cache(maxsize=8)(self._matching)

    def _matching(self, pattern: re.Pattern[bytes]) -> list[tuple[int, bytes]]:
        """Tokens whose bytes match a pattern as a whole, with their bytes."""
        found = (own for own in self._sorted if pattern.fullmatch(own))
        return [(token, own) for own in found for token in self._by_bytes[own]]

    def _leading_into(self, wanted: bytes, after: re.Pattern[bytes]) -> tuple[int, ...]:
        """Tokens that are the beginning of what is wanted, or all of it and more.

        Args:
            after: what more may be.
        """
        beginnings = (wanted[:stop] for stop in range(1, len(wanted) + 1))
        found = [token for begun in beginnings for token in self._by_bytes.get(begun, ())]
        for longer in self._longer_than(wanted):
            if after.fullmatch(longer, len(wanted)):
                found += self._by_bytes[longer]
        return tuple(found)

    def _longer_than(self, wanted: bytes) -> Iterator[bytes]:
        for longer in self._sorted[bisect_left(self._sorted, wanted) :]:
            if not longer.startswith(wanted):
                return
            if longer != wanted:
                yield longer


def _bytes_of(text: str, spelled: str) -> bytes:
    """Bytes of a token that is decoded to a text, and spelled so in the vocabulary."""
    if REPLACEMENT not in text:
        return text.encode("utf-8", "surrogatepass")
    letters = _letters()
    if any(letter not in letters for letter in spelled):
        return UNKNOWN
    raw = bytes(letters[letter] for letter in spelled)
    return raw if raw.decode("utf-8", "replace") == text else UNKNOWN


@lru_cache(maxsize=1)
def _letters() -> dict[str, int]:
    """How vocabularies of bytes (GPT-2 and after) spell each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {
        chr(256 + place): byte for place, byte in enumerate(others)
    }
