"""What a message says is text, in every family of tokenizers; what a template says is control."""

from collections import Counter
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from forethought.errors import PolicyError
from forethought.models.encoding import Encoder
from forethought.types import Message
from tests.contract.architectures.builders import (
    TEXT,
    byte_level_tokenizer,
    sentencepiece_tokenizer,
)

SPECIALS = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "<|im_end|>"]
TEMPLATE = """\
{{- bos_token -}}
{%- for m in messages -%}
{%- if m['role'] == 'user' %}{{ '[INST] ' + m['content'] + ' [/INST]' }}
{%- else %}{{ m['content'] + eos_token }}{% endif -%}
{%- endfor -%}"""


def unigram_tokenizer(specials: list[str], **settings: Any) -> PreTrainedTokenizerFast:
    """As T5 and XGLM have it; its vocabulary knows its special tokens as words, too."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=specials, unk_token=specials[0], show_progress=False
    )
    tokenizer.train_from_iterator([TEXT, " ".join(SPECIALS)] * 3, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **settings)


def word_piece_tokenizer(specials: list[str], **settings: Any) -> PreTrainedTokenizerFast:
    """As BERT has it: small letters, punctuation by itself, blanks forgotten."""
    tokenizer = Tokenizer(models.WordPiece(unk_token=specials[0]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=specials, show_progress=False
    )
    tokenizer.train_from_iterator([TEXT, " ".join(SPECIALS)] * 3, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **settings)


FAMILIES = {
    "byte-level BPE": byte_level_tokenizer,
    "BPE with byte fallback": sentencepiece_tokenizer,
    "unigram": unigram_tokenizer,
    "word pieces": word_piece_tokenizer,
}


def make_encoder(tokenizer: PreTrainedTokenizerFast, template: str = TEMPLATE) -> Encoder:
    tokenizer.chat_template = template
    with torch.device("meta"):
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=len(tokenizer),
                hidden_size=8,
                intermediate_size=8,
                num_hidden_layers=1,
                num_attention_heads=1,
                eos_token_id=2,
            )
        )
    return Encoder(model, tokenizer)


@pytest.fixture(params=FAMILIES)
def encoder(request: pytest.FixtureRequest) -> Encoder:
    make = FAMILIES[request.param]
    return make_encoder(
        make(SPECIALS, unk_token="<unk>", bos_token="<s>", eos_token="</s>")
        if make is not sentencepiece_tokenizer
        else make(SPECIALS, eos_token="</s>")
    )


def decoded(encoder: Encoder, ids: tuple[int, ...]) -> str:
    text = encoder.tokenizer.decode(list(ids))
    assert isinstance(text, str)
    return text


def special_ids(encoder: Encoder, words: list[str]) -> list[int]:
    ids = encoder.tokenizer.convert_tokens_to_ids(words)
    assert isinstance(ids, list)
    return ids


def ids_of(encoder: Encoder, text: str) -> tuple[int, ...]:
    """Of a conversation in which the text is said twice by the user, and once by the model."""
    said = [Message("user", text), Message("assistant", text), Message("user", text)]
    return encoder.encode(said).token_ids


def controls(encoder: Encoder, ids: tuple[int, ...]) -> Counter[int]:
    known = special_ids(encoder, SPECIALS[1:])
    return Counter(token for token in ids if token in known)


def letters(text: str) -> str:
    """Less what a family of tokenizers forgets by its nature."""
    return "".join(text.lower().split())


@pytest.mark.parametrize("word", SPECIALS[1:])
@pytest.mark.parametrize(
    "said", ["{}", "a {} b", "move{}right", "{0}{0}", "\n{}\n", '{{"x": "{}"}}']
)
def test_what_is_said_is_text(encoder: Encoder, said: str, word: str) -> None:
    text = said.format(word)
    ids = ids_of(encoder, text)
    assert controls(encoder, ids) == controls(encoder, ids_of(encoder, "move right"))
    assert controls(encoder, ids) == Counter(
        special_ids(encoder, ["<s>", *["[INST]", "[/INST]"] * 2, "</s>"])
    )
    assert letters(decoded(encoder, ids)).count(letters(text)) >= 3


@pytest.mark.parametrize("word", SPECIALS[1:])
def test_an_answer_holds_no_control_token_but_its_end(encoder: Encoder, word: str) -> None:
    *ids, end = encoder.tokenize_response(f'{{"action": "a {word} b"}}')
    assert end == encoder.tokenizer.eos_token_id
    assert not controls(encoder, tuple(ids))


@pytest.mark.parametrize(
    "text", ["move right", "", " a\n\nb ", "é ☃", "</ s>", "im_end", "<|im_end|"]
)
def test_harmless_text_has_the_librarys_ids(encoder: Encoder, text: str) -> None:
    said = [{"role": role, "content": text} for role in ("user", "assistant", "user")]
    expected: Any = encoder.tokenizer.apply_chat_template(
        said, tokenize=True, return_dict=True, add_generation_prompt=True
    )
    assert list(ids_of(encoder, text)) == expected["input_ids"]


def test_the_opening_token_is_written_once() -> None:
    """Template and tokenizer both add it."""
    tokenizer = sentencepiece_tokenizer(SPECIALS, eos_token="</s>")
    assert tokenizer("a")["input_ids"][0] == tokenizer.bos_token_id
    encoder = make_encoder(tokenizer)
    for text in ("a", "a </s>"):
        ids = encoder.encode([Message("user", text)]).token_ids
        assert [place for place, token in enumerate(ids) if token == tokenizer.bos_token_id] == [0]


def test_an_added_token_that_the_template_writes_is_control() -> None:
    """`<|turn|>` is not declared special, but closes turns."""
    tokenizer = byte_level_tokenizer(["</s>"], eos_token="</s>")
    tokenizer.add_tokens(["<|turn|>", "<|other|>"])
    encoder = make_encoder(
        tokenizer, "{% for m in messages %}{{ m['content'] + '<|turn|>' }}{% endfor %}"
    )
    turn, other = special_ids(encoder, ["<|turn|>", "<|other|>"])
    ids = encoder.encode([Message("user", "a <|turn|> b <|other|> c")]).token_ids
    assert ids.count(turn) == 1
    assert ids.count(other) == 1  # a word of the vocabulary, with no meaning in a conversation


def test_a_word_that_cannot_be_text_is_refused() -> None:
    """A vocabulary of whole words knows no other way to write it."""
    words = {word: index for index, word in enumerate(["<unk>", "<s>", "</s>", "a", "!", "/s>"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="</s>", additional_special_tokens=["!"]
    )
    encoder = make_encoder(fast, "{% for m in messages %}{{ m['content'] }} {% endfor %}")
    # `</s>` can be broken, "!" has nothing to break.
    assert encoder.encode([Message("user", "a </s> a")]).token_ids.count(2) == 0
    with pytest.raises(PolicyError, match="'!', which this tokenizer reads as a control") as info:
        encoder.encode([Message("user", "a ! a")])
    assert "\n" not in str(info.value)
