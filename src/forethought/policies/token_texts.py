"""What each token of a vocabulary adds to a text, and which tokens may begin a given one."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence


class TokenTexts:
    """The characters of every token, looked up by what they begin with."""

    def __init__(
        self, vocabulary: int, anchor: int, decode: Callable[[Sequence[int]], str]
    ) -> None:
        """
        Args:
            vocabulary: tokens are 0 … vocabulary - 1.
            anchor: an ordinary token to stand before each: many tokenizers write a token
                differently at the start of a text.
            decode: ids to text, special tokens left out.
        """
        start = len(decode([anchor]))
        self.of_id = [decode([anchor, token])[start:] for token in range(vocabulary)]
        by_text: dict[str, list[int]] = {}
        for token, text in enumerate(self.of_id):
            if text:  # Special tokens have none.
                by_text.setdefault(text, []).append(token)
        self._by_text = by_text
        self._sorted = sorted(by_text)

    def leading_into(self, text: str) -> Iterator[int]:
        """Tokens whose characters are the beginning of a text, or all of it and more."""
        for stop in range(1, len(text) + 1):
            yield from self._by_text.get(text[:stop], ())
        for longer in self._sorted[bisect_left(self._sorted, text) :]:
            if not longer.startswith(text):
                return
            if len(longer) > len(text):
                yield from self._by_text[longer]
