"""Messages to token ids and image tensors, by the model's own processor."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.processing_utils import ProcessorMixin
from transformers.utils.chat_template_utils import encode_marked_chat, mark_control_tokens

from forethought.errors import PolicyError
from forethought.models.chat_template import ChatTemplate
from forethought.models.limits import limits_of
from forethought.models.token_text import DetokenizedText, GrowingText, TokenBytes, detokenize
from forethought.types import Image, Message, Prompt

# For base models whose tokenizer brings no chat template (GPT-2). A response ends as the model
# ends it, so that a conversation is what was fed and sampled.
PLAIN_CHAT_TEMPLATE = """\
{%- for message in messages -%}
{{ message['content'] }}
{%- if message['role'] == 'assistant' -%}{{ eos_token }}{%- else -%}{{ '\n' }}{%- endif -%}
{%- endfor -%}"""

MAX_REMEMBERED_TOKENS = 2_000_000
"""Limit of prompts that may come again: some 100 MB with their texts. Whoever asks a server for
ever different ones would otherwise fill its memory."""

IMAGE_INPUT_NAMES = ("pixel_values", "image_sizes", "image_grid_thw", "pixel_attention_mask")

Encode = Callable[[Callable[[str], str], bool], tuple[int, ...]]
"""Encodes a prompt, given what is to be done to each text, and whether it then holds marks."""


class Encoder:
    """Turns messages into the exact inputs of one model, and ids back into text."""

    def __init__(
        self, model: PreTrainedModel, processor: ProcessorMixin | PreTrainedTokenizerBase
    ) -> None:
        """
        Raises:
            PolicyError: no end-of-sequence token, or no chat template that places images.
        """
        self.processor = processor
        self.tokenizer = _tokenizer_of(processor)
        self.reads_images = isinstance(processor, ProcessorMixin)
        self.processor.chat_template = _chat_template(processor, self.tokenizer)
        self.template = ChatTemplate(
            self.tokenizer.get_chat_template(self.processor.chat_template),
            self.tokenizer.special_tokens_map,
            prefers_parts=self.reads_images,
        )
        self.image_token_id: int | None = getattr(model.config, "image_token_id", None)
        self.placeholder_ids = placeholder_ids(model)
        self.limits = limits_of(model.config)
        self.stop_ids = _stop_ids(model, self.tokenizer)
        self.pad_id = _harmless_pad_id(self.tokenizer, self.image_token_id)
        accepted = inspect.signature(model.forward).parameters
        self.control_tokens = ControlTokens(
            self.tokenizer, self.template.words, [*self.stop_ids, *self.placeholder_ids]
        )
        self._image_inputs = tuple(name for name in IMAGE_INPUT_NAMES if name in accepted)
        self._ids_of_layout: dict[tuple[object, ...], tuple[int, ...]] = {}
        self._remembered_tokens = 0
        self._token_bytes: TokenBytes | None = None
        self._decode_window = lru_cache(maxsize=65536)(self._decode)

    def encode(self, messages: Sequence[Message]) -> Prompt:
        """Applies the chat template and expands image placeholders.

        Control tokens and placeholders that stand in the text itself (a web page may say
        `<image>`) are read as text.

        Raises:
            PolicyError: an image for a model that reads none; a conversation that the template
                refuses.
            PromptTooLongError: more tokens than the model has positions.
        """
        images = [message.image for message in messages if message.image is not None]
        if images and not self.reads_images:
            raise PolicyError(
                f"this is a text-only model, but the prompt has {len(images)} image(s) — choose a "
                "vision-language model, or an environment of text"
            )
        # The ids depend on the words and the image sizes only, not on the pixels.
        layout = tuple(
            (m.role, m.text, None if m.image is None else m.image.shape) for m in messages
        )
        if layout not in self._ids_of_layout:
            ids = self._render(messages)
            self._remembered_tokens += len(ids)
            if self._remembered_tokens > MAX_REMEMBERED_TOKENS:
                self._ids_of_layout.clear()
                self._remembered_tokens = len(ids)
            self._ids_of_layout[layout] = ids
        return Prompt(tuple(messages), self._ids_of_layout[layout])

    def _render(self, messages: Sequence[Message]) -> tuple[int, ...]:
        def encode(change: Callable[[str], str], is_marked: bool) -> tuple[int, ...]:
            changed = [replace(message, text=change(message.text)) for message in messages]
            text = self.template.render(changed)
            self._require_readable(text, "the prompt")
            return self._tokenize(text, changed, is_marked)

        texts = [message.text for message in messages]
        for text in texts:
            self._require_readable(text, "the prompt")
        ids = self.control_tokens.encode(texts, encode)
        self.limits.require_prompt(len(ids))
        return ids

    def _require_readable(self, text: str, what: str) -> None:
        """Refuses what is much too long by its beginning: megabytes are not tokenized whole.

        Raises:
            PromptTooLongError: the first part alone has too many tokens.
        """
        longest = self.limits.longest
        part = 8 * (longest or 0)
        while longest is not None and part < len(text):
            ids = self.tokenizer.encode(text[:part], add_special_tokens=False, verbose=False)
            # The cut may have split a word into more tokens than it has.
            self.limits.require_prompt(
                max(0, len(ids) - 16), f"{what}, a text of {len(text):,} characters,", "at least "
            )
            part *= 4

    def _tokenize(self, text: str, messages: Sequence[Message], is_marked: bool) -> tuple[int, ...]:
        """Ids of a prompt as the library's own `apply_chat_template` makes them.

        A text-only tokenizer adds nothing to what the template wrote; a processor opens the text
        with the token that opens texts, unless the template did.
        """
        images = [message.image for message in messages if message.image is not None]
        # Not verbose: what is too long is refused, with more to say than the library's warning.
        marked = {"verbose": False, **({"sanitize_control_tokens": True} if is_marked else {})}
        read: Any = self.processor
        if not self.reads_images:
            encoded = read(text, add_special_tokens=False, **marked)
            return _ids(encoded)
        opening = self.tokenizer.bos_token
        is_open = isinstance(opening, str) and text.startswith(opening)
        settings = {"add_special_tokens": False} if is_open or is_marked else {}
        encoded = read(text=text, images=[images] if images else None, **settings, **marked)
        # The library marks no text that it opens itself.
        before = () if is_open or not is_marked else _ids(self.tokenizer(""))
        return (*before, *_ids(encoded))

    def tokenize_response(self, text: str) -> tuple[int, ...]:
        """Ids of a response written by an expert, the stop token included.

        Only for text that no model sampled: sampled ids are never rebuilt from text.

        Raises:
            PromptTooLongError: more tokens than the model has positions.
        """
        self._require_readable(text, "the answer")
        return (*self.control_tokens.encode_text(text), self.stop_ids[0])

    def detokenize(self, token_ids: Sequence[int]) -> DetokenizedText:
        """Text and per-token offsets of sampled ids, special tokens left out."""
        return detokenize(token_ids, self._decode_any)

    def growing_text(self) -> GrowingText:
        """The text of a completion that is being written; empty at first."""
        return GrowingText(self._decode_any)

    def token_bytes(self) -> TokenBytes:
        """The bytes of every token of the vocabulary; worked out once."""
        if self._token_bytes is None:
            self._token_bytes = TokenBytes(
                len(self.tokenizer),
                self.tokenize_response("a")[0],
                lambda ids: self.detokenize(ids).text,
                lambda token: str(self.tokenizer.convert_ids_to_tokens(token)),
            )
        return self._token_bytes

    def _decode_any(self, token_ids: tuple[int, ...]) -> str:
        # A few tokens in a row come again and again, whole responses do not.
        return self._decode_window(token_ids) if len(token_ids) <= 8 else self._decode(token_ids)

    def _decode(self, token_ids: tuple[int, ...]) -> str:
        text = self.tokenizer.decode(
            list(token_ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        assert isinstance(text, str)
        return text

    def image_inputs(self, images: Sequence[Image]) -> dict[str, Tensor]:
        """What the model's forward pass takes for these images, concatenated in order."""
        if not images:
            return {}
        image_processor: Any = self.processor.image_processor  # pyright: ignore[reportAttributeAccessIssue]
        encoded = image_processor(images=list(images), return_tensors="pt")
        return {name: encoded[name] for name in self._image_inputs if name in encoded}


def _ids(encoded: Any) -> tuple[int, ...]:
    ids = encoded["input_ids"]
    return tuple(ids[0] if ids and isinstance(ids[0], list) else ids)


def _tokenizer_of(processor: ProcessorMixin | PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    if isinstance(processor, PreTrainedTokenizerBase):
        return processor
    tokenizer = getattr(processor, "tokenizer", None)
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise PolicyError(f"{type(processor).__name__} holds no tokenizer")
    return tokenizer


def _chat_template(
    processor: ProcessorMixin | PreTrainedTokenizerBase, tokenizer: PreTrainedTokenizerBase
) -> Any:
    template = getattr(processor, "chat_template", None) or tokenizer.chat_template
    if template is None and processor is not tokenizer:
        raise PolicyError(
            f"{type(processor).__name__} has no chat template, so nothing says where an image "
            "goes in the prompt — put chat_template.jinja into the model's folder"
        )
    return template or PLAIN_CHAT_TEMPLATE


def placeholder_ids(model: PreTrainedModel) -> list[int]:
    """Ids that stand for images and films, of which a prompt has many and a response none."""
    names = ("image_token_id", "video_token_id")
    ids = [getattr(model.config, name, None) for name in names]
    return [i for i in ids if isinstance(i, int)]


def _stop_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """The tokenizer's end-of-sequence id first, then any other that the model declares."""
    declared = getattr(model.generation_config, "eos_token_id", None)
    others = declared if isinstance(declared, list) else [declared]
    ids = [tokenizer.eos_token_id, *others]
    stop_ids = tuple(dict.fromkeys(int(i) for i in ids if isinstance(i, int)))
    if not stop_ids:
        raise PolicyError("neither tokenizer nor generation config names an end-of-sequence token")
    return stop_ids


def _harmless_pad_id(tokenizer: PreTrainedTokenizerBase, image_token_id: int | None) -> int:
    """An ordinary id for positions that nothing attends to.

    The tokenizer's own padding id makes some models warn or mask, and an image
    placeholder would be counted as an image.
    """
    special = {*tokenizer.all_special_ids, image_token_id}
    return next(i for i in range(len(tokenizer)) if i not in special)


class ControlTokens:
    """The words that one tokenizer reads as control tokens: a template's to write, text elsewhere.

    A message may hold `<|im_end|>` or `<image>` (a web page does, and an opponent may). Tokenized
    with the prompt, it would close its own turn. The library marks such words before the template
    is rendered, and reads what is marked as plain text; where a tokenizer cannot (its vocabulary
    knows the word besides), the word is broken by a space.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, template_words: str, further_ids: Iterable[int]
    ) -> None:
        """
        Args:
            tokenizer: of the model.
            template_words: all texts that its chat template holds. An added token that stands in
                them is a control token, though it may not be declared as one.
            further_ids: those that end a response or stand for images.
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
        """Whether a text holds one of them."""
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
