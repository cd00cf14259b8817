"""Token ids to text: every character belongs to a token, and the text is the tokenizer's own."""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers import decoders as tokenizer_decoders
from tokenizers import models as tokenizer_models
from transformers import PreTrainedTokenizerFast

from forethought.models.tiny import SPECIAL_TOKENS, train_tokenizer
from forethought.models.token_text import DetokenizedText, detokenize

WORDS = 'move the current number to target answer "thoughts": "action": é ☃ 中 0 1 2 3 + - so'


@cache
def byte_level() -> PreTrainedTokenizerFast:
    return train_tokenizer([WORDS] * 3)


@cache
def byte_fallback() -> PreTrainedTokenizerFast:
    """As Llama 2 has it: `▁` for a space, none before the first word, bytes for the rest."""
    words = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁so", "▁move", "a", "☃"]
    model = tokenizer_models.BPE(
        vocab={word: index for index, word in enumerate(words)}, merges=[], byte_fallback=True
    )
    tokenizer = Tokenizer(model)
    tokenizer.decoder = tokenizer_decoders.Sequence(  # pyright: ignore[reportAttributeAccessIssue]
        [
            tokenizer_decoders.Replace("▁", " "),
            tokenizer_decoders.ByteFallback(),
            tokenizer_decoders.Fuse(),
            tokenizer_decoders.Strip(" ", 1, 0),
        ]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>")


TOKENIZERS = {"bytes": byte_level, "byte fallback": byte_fallback}
for_each_tokenizer = pytest.mark.parametrize("make", TOKENIZERS.values(), ids=TOKENIZERS)


def is_plain(text: str) -> bool:
    """Whether no special token is spelled out in it, which a tokenizer would not read as text."""
    return not any(token in text for token in SPECIAL_TOKENS)


def decode(tokenizer: PreTrainedTokenizerFast, ids: Sequence[int]) -> str:
    text = tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert isinstance(text, str)
    return text


def read(tokenizer: PreTrainedTokenizerFast, ids: Sequence[int]) -> DetokenizedText:
    return detokenize(ids, lambda window: decode(tokenizer, window))


def pieces_of(read_text: DetokenizedText) -> list[str]:
    text, starts = read_text
    return [text[a:b] for a, b in pairwise((*starts, len(text)))]


@for_each_tokenizer
@settings(deadline=None)  # a busy machine is not a failure
@given(data=st.data())
def test_any_ids(make: object, data: st.DataObject) -> None:
    """Special tokens, halves of characters and all: spans tile the tokenizer's own text."""
    tokenizer = make()  # pyright: ignore[reportCallIssue]
    ids = data.draw(st.lists(st.integers(0, len(tokenizer) - 1), max_size=30))
    result = read(tokenizer, ids)
    assert result.text == decode(tokenizer, ids)
    assert len(result.token_offsets) == len(ids)
    assert list(result.token_offsets) == sorted(result.token_offsets)
    assert result.token_offsets[:1] in ((), (0,))
    assert "".join(pieces_of(result)) == result.text


@settings(deadline=None)
@given(st.text(max_size=40).filter(is_plain))
def test_any_text_comes_back(text: str) -> None:
    tokenizer = byte_level()
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert read(tokenizer, ids).text == text


@settings(deadline=None)
@given(st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=40).filter(is_plain))
def test_a_token_of_whole_characters_has_its_own_piece(text: str) -> None:
    """The oracle: where no character is torn, a byte-level token's text is its own."""
    tokenizer = byte_level()
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert pieces_of(read(tokenizer, ids)) == [decode(tokenizer, [i]) for i in ids]


def test_a_torn_character_starts_where_its_first_token_does() -> None:
    """`🂡` is four bytes, and these tokenizers know it in no larger piece."""
    tokenizer = byte_level()
    ids = tokenizer.encode("so 🂡!", add_special_tokens=False)
    text, starts = read(tokenizer, ids)
    card = text.index("🂡")
    assert starts.count(card) == 4
    assert pieces_of(DetokenizedText(text, starts))[-1] == "!"


def test_cut_within_a_character() -> None:
    tokenizer = byte_level()
    ids = tokenizer.encode("so 🂡", add_special_tokens=False)[:-1]
    text, starts = read(tokenizer, ids)
    assert text == "so \ufffd"
    assert pieces_of(DetokenizedText(text, starts))[-1] == "\ufffd"


def test_a_first_word_loses_its_space_and_later_ones_keep_it() -> None:
    tokenizer = byte_fallback()
    ids = tokenizer.convert_tokens_to_ids(["▁so", "▁move", "▁so"])
    assert isinstance(ids, list)
    assert pieces_of(read(tokenizer, ids)) == ["so", " move", " so"]


def test_special_tokens_have_no_text() -> None:
    tokenizer = byte_level()
    stop = tokenizer.eos_token_id
    assert isinstance(stop, int)
    ids = [stop, *tokenizer.encode("so", add_special_tokens=False), stop, stop]
    assert pieces_of(read(tokenizer, ids)) == ["", "so", "", ""]


def test_bytes_that_are_no_character() -> None:
    """They may be the beginning of one, until the word behind them: it shares their start."""
    for make in TOKENIZERS.values():
        tokenizer = make()
        ids = [i for i in range(len(tokenizer)) if "\ufffd" in decode(tokenizer, [i])][:3]
        word = tokenizer.encode("so", add_special_tokens=False) if make is byte_level else [258]
        result = read(tokenizer, [*word, *ids, *word])
        assert result.text == decode(tokenizer, [*word, *ids, *word])
        assert "".join(pieces_of(result)) == result.text
        assert pieces_of(result)[-1].endswith("so")


def test_no_tokens() -> None:
    assert detokenize((), lambda ids: "") == DetokenizedText("", ())


@for_each_tokenizer
def test_decoding_is_linear_in_the_length(make: object) -> None:
    """Work, counted rather than timed: tokens handed to the decoder. Words with and without
    their space, and torn characters, are no reason to look at the whole text again."""
    tokenizer = make()  # pyright: ignore[reportCallIssue]
    handed = 0

    def count(window: tuple[int, ...]) -> str:
        nonlocal handed
        handed += len(window)
        return decode(tokenizer, window)

    if make is byte_level:
        ids = tokenizer.encode("move so 🂡 " * 100, add_special_tokens=False)
    else:
        card = [f"<0x{byte:02X}>" for byte in "🂡".encode()]
        ids = tokenizer.convert_tokens_to_ids(["▁move", "▁so", *card] * 100)
    detokenize(ids, count)
    assert handed <= 6 * len(ids)
