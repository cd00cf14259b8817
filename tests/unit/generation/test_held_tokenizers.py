"""Every answer that reaches its field names an action, whatever the actions are made of.

Each token is drawn at random from those that are left, by tokenizers of both kinds.
"""

import json
import random
from collections.abc import Callable, Sequence

import pytest
from transformers import PreTrainedTokenizerFast

from forethought.generation.sampling import ActionField
from forethought.models.token_text import TokenBytes, detokenize
from forethought.prompts.responses import parse_response
from forethought.types import Completion, FinishReason, ParsedAction
from tests.unit.models.test_detokenize import decode, for_each_tokenizer

CASES = {
    "quotation mark": ('say "no"', 'say "yes"', '"'),
    "backslash": ("a\\b", "a\\", "\\\\"),
    "several tokens": ("é☃", "é", "☃é", "中"),
    "of all kinds": ('é"☃', "é\\\n☃", "go", "🂡"),
    "plain": ("go north", "go", "south"),
}
LONGEST = 200
"""Tokens; enough for every name, in the longest spelling."""


def tokens_of(tokenizer: PreTrainedTokenizerFast) -> TokenBytes:
    anchor = tokenizer.encode("a", add_special_tokens=False)[0]
    spell = tokenizer.convert_ids_to_tokens
    return TokenBytes(
        len(tokenizer), anchor, lambda ids: decode(tokenizer, ids), lambda token: str(spell(token))
    )


def read(tokenizer: PreTrainedTokenizerFast, ids: Sequence[int], names: list[str]) -> ParsedAction:
    text, offsets = detokenize(tuple(ids), lambda some: decode(tokenizer, some))
    completion = Completion(
        tuple(ids), (0.0,) * len(ids), offsets, text, FinishReason.STOP, temperature=1.0
    )
    return parse_response(completion, names)


def answer(
    tokenizer: PreTrainedTokenizerFast, tokens: TokenBytes, names: Sequence[str], seed: int
) -> list[int]:
    """At random; the thoughts and the key are put into its mouth."""
    stop = tokenizer.eos_token_id
    assert isinstance(stop, int)
    field = ActionField(tokens, names, [stop])
    written = tokenizer.encode('{"thoughts": "é", "action"', add_special_tokens=False)
    for token in written:
        field.write(token)
    rng = random.Random(seed)
    while len(written) < LONGEST and written[-1] != stop:
        allowed = field.allowed()
        assert allowed is not None
        written.append(rng.choice(allowed))
        field.write(written[-1])
    return written


@for_each_tokenizer
@pytest.mark.parametrize("names", CASES.values(), ids=CASES)
def test_every_answer_names_an_action(
    make: Callable[[], PreTrainedTokenizerFast], names: list[str]
) -> None:
    tokenizer = make()
    tokens = tokens_of(tokenizer)
    named: set[str] = set()
    for seed in range(200):
        ids = answer(tokenizer, tokens, names, seed)
        parsed = read(tokenizer, ids, names)
        assert parsed.is_valid, decode(tokenizer, ids)
        named.add(parsed.action)
    assert named == set(names)


@for_each_tokenizer
@pytest.mark.parametrize("names", CASES.values(), ids=CASES)
@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_the_spelling_of_an_expert_is_open(
    make: Callable[[], PreTrainedTokenizerFast], names: list[str], ensure_ascii: bool
) -> None:
    """What SFT teaches, and the same with characters as they are, token by token."""
    tokenizer = make()
    tokens = tokens_of(tokenizer)
    for name in names:
        text = json.dumps({"action": name}, ensure_ascii=ensure_ascii)
        ids = tokenizer.encode(text, add_special_tokens=False)
        field = ActionField(tokens, names, [0])
        for token in ids:
            allowed = field.allowed()
            assert allowed is None or token in allowed
            field.write(token)
        assert read(tokenizer, ids, names).action == name


def test_a_quotation_mark_that_the_next_byte_spoils_is_none() -> None:
    """Of a run of single bytes that is no UTF-8, none is read as it is: there is no key yet."""
    vocabulary = ["a", "<0xE2>", "<0x22>", '"', "action", ":", "<0x80>"]

    def text_of(ids: Sequence[int]) -> str:
        return "".join({1: "\ufffd", 2: '"', 6: "\ufffd"}.get(i, vocabulary[i]) for i in ids)

    tokens = TokenBytes(len(vocabulary), 0, text_of, vocabulary.__getitem__)
    assert tokens.of_id[1:3] == [b"\xe2", b'"']
    whole, spoiled = ActionField(tokens, ["a"]), ActionField(tokens, ["a"])
    for token in ("<0x22>", "action", '"'):
        whole.write(vocabulary.index(token))
    for token in ("<0xE2>", "<0x22>", "action", '"'):
        spoiled.write(vocabulary.index(token))
    assert whole.allowed() == (vocabulary.index(":"),)
    assert spoiled.allowed() is None


def test_tokens_whose_bytes_nobody_knows_are_never_a_part_of_a_name() -> None:
    spelled = ["a", "(half of é)", '"', ":"]
    texts = ["a", "\ufffd", '"', ":"]
    tokens = TokenBytes(
        len(texts), 0, lambda ids: "".join(texts[i] for i in ids), spelled.__getitem__
    )
    field = ActionField(tokens, ["é"])
    field.write(2)
    assert field.allowed() is None
