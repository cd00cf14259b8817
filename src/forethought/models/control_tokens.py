"""Control tokens are a template's to write: in what is said they are text.

A message may hold `<|im_end|>` or `<image>` (a web page does, and an opponent may). Tokenized
with the prompt, it would close its own turn. The library marks such words before the template is
rendered, and reads what is marked as plain text; where a tokenizer cannot (its vocabulary knows
the word besides), the word is broken by a space.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase
from transformers.utils.chat_template_utils import encode_marked_chat, mark_control_tokens

from forethought.errors import PolicyError

Encode = Callable[[Callable[[str], str], bool], tuple[int, ...]]
"""Encodes a prompt, given what is to be done to each text, and whether it then holds marks."""


class ControlTokens:
    """The words that one tokenizer reads as control tokens."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, template_words: str, further_ids: Iterable[int]
    ) -> None:
        """
        Args:
            tokenizer: of the model.
            template_words: all texts that its chat template holds. An added token that stands in
                them is a control token, though it may not be declared as one.
            further_ids: those that end an answer or stand for images.
        """
        self._tokenizer = tokenizer
        further = frozenset(further_ids)
        ids_of = {
            token.content: index
            for index, token in tokenizer.added_tokens_decoder.items()
            if token.special or index in further or token.content in template_words
        }
        # Blank ones (Gemma has "\n") are ordinary text.
        ids_of = {word: index for word, index in ids_of.items() if word.strip()}
        longest_first = sorted(ids_of, key=lambda word: (-len(word), word))
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        # Any text may hold what a tokenizer does not know: that closes nothing, unless (GPT-2)
        # the token has other duties.
        unknown: Any = tokenizer.unk_token_id
        duties: list[Any] = [*further, tokenizer.bos_token_id, tokenizer.eos_token_id]
        spared = () if unknown in duties else (unknown,)
        self.ids = frozenset(ids_of.values()).difference(spared)

    def are_in(self, text: str) -> bool:
        return self._pattern.search(text) is not None

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Ids of a text by itself, of which none is a control token's."""

        def encode(change: Callable[[str], str], is_marked: bool) -> tuple[int, ...]:
            if is_marked:
                return tuple(encode_marked_chat(self._tokenizer, change(text)))
            return tuple(self._tokenizer.encode(change(text), add_special_tokens=False))

        return self.encode([text], encode)

    def encode(self, texts: Sequence[str], encode: Encode) -> tuple[int, ...]:
        """Ids of a prompt in which these texts are said, and hold no control tokens.

        Raises:
            PolicyError: however they are written, a control token comes of them.
        """
        if not any(map(self.are_in, texts)):
            return encode(str, False)
        harmless = self._counts(encode(lambda text: self._pattern.sub("x", text), False))
        try:
            ids = encode(lambda text: mark_control_tokens(text, self._pattern), True)
        except ValueError:  # The library's: this tokenizer makes the token from plain text.
            ids = None
        if ids is None or self._counts(ids) != harmless:
            ids = encode(lambda text: self._pattern.sub(_broken, text), False)
        if self._counts(ids) != harmless:
            words = sorted({word for text in texts for word in self._pattern.findall(text)})
            raise PolicyError(
                f"the text of a message holds {words[0]!r}, which this tokenizer reads as a "
                "control token however it is written — leave it out of the text"
            )
        return ids

    def _counts(self, ids: Sequence[int]) -> Counter[int]:
        return Counter(token for token in ids if token in self.ids)


def _broken(word: re.Match[str]) -> str:
    return f"{word[0][0]} {word[0][1:]}"
