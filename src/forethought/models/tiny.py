"""The embedded models: LLaVAs of about a million parameters, randomly initialized.

The same Hugging Face classes as LLaVA-1.5 (CLIP vision tower, two-layer projector, Llama
decoder), small enough to be trained from scratch on two CPU cores; the tokenizer is
trained on the environments' own text, and their background is presented as 0. Save it with
`save_pretrained`, load it back like any checkpoint.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers.models.clip.configuration_clip import CLIPVisionConfig
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llava.configuration_llava import LlavaConfig
from transformers.models.llava.modeling_llava import LlavaForConditionalGeneration
from transformers.models.llava.processing_llava import LlavaProcessor
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

from forethought.configs.parts import TINY_MODELS
from forethought.models.loading import LoadedModel
from forethought.types import Image

IMAGE_SIZE = 64
"""Pixels on a side; other sizes are resized."""
PATCH_SIZE = 8
"""64 image tokens. Patches of 16 do not learn to read digits in minutes."""

Color = tuple[float, float, float]
"""Brightness of red, green and blue, from 0 to 1."""

PAPER: Color = (0.95, 0.95, 0.95)
"""The background of the card games, and of a model that has not been shown an image."""

LIKE_PAPER = 0.1
"""How far from it, in each channel, a background is still called paper: nothing is seen sooner
for a smaller distance, and the card games' results stay those that were measured."""

PAD, END, IMAGE = "<|pad|>", "<|end|>", "<image>"
SPECIAL_TOKENS = (PAD, END, "<|system|>", "<|user|>", "<|assistant|>", IMAGE)

# A bin of a robot's action with the space before it, "b012", a cell of a room, "#" or "_", with the
# space or line break before it, a name that ends in a digit, "Ng1", one digit, one operator, one
# word with its space, or a run of the rest: a bin, or a square and who stands on it, can be one
# token, every cell of a room has its own place, formulas stay readable token by token, and the
# punctuation between two JSON fields is one token.
PIECES = (
    r" ?(?<![A-Za-z])b[0-9]{3}(?![0-9])|"
    r"(?:[ \n]|^)[#_](?=[ \n]|$)|"
    r" ?[A-Za-z]{1,4}[0-9](?![0-9])|[0-9]|[+\-*/()=]| ?[A-Za-z]+|[^A-Za-z0-9+\-*/()=]+"
)

CHAT_TEMPLATE = """\
{%- for message in messages -%}
<|{{ message['role'] }}|>
{%- for part in message['content'] -%}
{%- if part['type'] == 'image' -%}<image>{%- else -%}{{ part['text'] }}{%- endif -%}
{%- endfor -%}
{%- if message['role'] == 'assistant' -%}<|end|>{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"""


@dataclass(frozen=True)
class TinySize:
    """Widths and depths of the tiny model."""

    hidden_size: int = 128
    intermediate_size: int = 352
    layers: int = 4
    heads: int = 4
    vision_hidden_size: int = 96
    vision_layers: int = 3
    max_positions: int = 2048

    @property
    def initial_scale(self) -> float:
        """Standard deviation of initial weights: 1/√width, so that attention starts out able
        to tell positions apart. With the customary 0.02 a model this narrow needs several
        times as many steps before it looks at the image at all."""
        return self.hidden_size**-0.5


_SMALL = TinySize(hidden_size=64, intermediate_size=176, layers=2, heads=2, vision_hidden_size=64)
_LARGE = TinySize(hidden_size=256, intermediate_size=704, layers=6, heads=8, vision_hidden_size=128)

SIZES: dict[str, TinySize] = dict(zip(TINY_MODELS, (TinySize(), _SMALL, _LARGE), strict=True))
"""What a name stands for: 1.2, 0.3 and 5.6 million parameters, vocabulary included."""


def train_tokenizer(texts: Iterable[str], vocabulary: int = 2048) -> PreTrainedTokenizerFast:
    """Byte-level BPE over `texts`: any string can be encoded, these ones shortly."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(  # pyright: ignore[reportAttributeAccessIssue]
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return wrap_tokenizer(tokenizer)


def wrap_tokenizer(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """A trained tokenizer as transformers takes it."""
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        clean_up_tokenization_spaces=False,
        model_max_length=TinySize.max_positions,
    )


def background_of(images: Iterable[Image]) -> Color:
    """The median color of the pixels of images [height, width, 3], each channel by itself; paper
    where there are none, or where it is about as bright.

    It is what the processor presents as 0. A patch with nothing on it is silent then, instead of
    one of many that are all alike and loud: NumberLine's digits are read after 40 updates instead
    of 110, and the robot's objects begin to be seen after 200, where they were not after 500.
    """
    counts = np.zeros((3, 256), dtype=np.int64)
    for image in images:
        for channel, count in enumerate(counts):
            count += np.bincount(image[..., channel].ravel(), minlength=256)
    if not counts.any():
        return PAPER
    below = counts.cumsum(axis=1)
    median = (below >= below[:, -1:] / 2).argmax(axis=1) / 255
    if np.abs(median - PAPER).max() <= LIKE_PAPER:
        return PAPER
    red, green, blue = median.tolist()
    return red, green, blue


def build_processor(tokenizer: PreTrainedTokenizerFast, background: Color) -> LlavaProcessor:
    """Tokenizer, image processor and chat template as one Hugging Face processor.

    Args:
        tokenizer: the trained one.
        background: the color that is presented as 0.
    """
    images = CLIPImageProcessorPil(
        size={"height": IMAGE_SIZE, "width": IMAGE_SIZE},
        do_center_crop=False,
        image_mean=list(background),
        image_std=[0.5, 0.5, 0.5],
    )
    return LlavaProcessor(
        image_processor=images,
        tokenizer=tokenizer,
        patch_size=PATCH_SIZE,
        vision_feature_select_strategy="default",
        chat_template=CHAT_TEMPLATE,
        num_additional_image_tokens=1,  # CLIP's class token, which "default" then drops
    )


def build_model(
    tokenizer: PreTrainedTokenizerFast, *, seed: int, size: TinySize | None = None
) -> LlavaForConditionalGeneration:
    """A randomly initialized model; the same seed gives the same weights."""
    size = size or TinySize()
    vision = CLIPVisionConfig(
        hidden_size=size.vision_hidden_size,
        intermediate_size=2 * size.vision_hidden_size,
        num_hidden_layers=size.vision_layers,
        num_attention_heads=size.heads,
        image_size=IMAGE_SIZE,
        patch_size=PATCH_SIZE,
        hidden_act="gelu",  # one fused operation; CLIP's own "quick_gelu" is three
    )
    pad_id, end_id, image_id = map(SPECIAL_TOKENS.index, (PAD, END, IMAGE))
    text = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=size.hidden_size,
        intermediate_size=size.intermediate_size,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads,
        max_position_embeddings=size.max_positions,
        pad_token_id=pad_id,
        bos_token_id=None,
        eos_token_id=end_id,
        initializer_range=size.initial_scale,
        tie_word_embeddings=True,
    )
    config = LlavaConfig(
        vision_config=vision.to_dict(),
        text_config=text.to_dict(),
        image_token_index=image_id,
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
        tie_word_embeddings=True,
    )
    # Hugging Face initializes from the global generator: borrow it, and give it back.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlavaForConditionalGeneration(config)


def make_tiny(
    texts: Iterable[str],
    images: Iterable[Image] = (),
    *,
    seed: int,
    size: TinySize | None = None,
) -> LoadedModel:
    """Model and processor for environments in which `texts` are said and `images` are seen; nothing
    is downloaded."""
    return tiny_with(train_tokenizer(texts), background_of(images), seed=seed, size=size)


def tiny_with(
    tokenizer: PreTrainedTokenizerFast,
    background: Color,
    *,
    seed: int,
    size: TinySize | None = None,
) -> LoadedModel:
    """A randomly initialized model for a tokenizer, with its processor."""
    model = build_model(tokenizer, seed=seed, size=size)
    return LoadedModel(model, build_processor(tokenizer, background))
