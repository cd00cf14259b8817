"""Tiny random checkpoints of real architectures, written as their makers publish them.

Each builder writes a folder that `load_policy` reads the way it reads a download: weights,
configuration, tokenizer, image processor and chat template. The weights are random, but
larger than usual, so that different prompts get different answers.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    CLIPVisionConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaNextConfig,
    LlavaNextForConditionalGeneration,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.llava.processing_llava import LlavaProcessor
from transformers.models.llava_next.image_processing_pil_llava_next import (
    LlavaNextImageProcessorPil,
)
from transformers.models.llava_next.processing_llava_next import LlavaNextProcessor
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import (
    Qwen2_5_VLForConditionalGeneration,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLConfig
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLForConditionalGeneration

WIDTH = 32
"""Hidden size of every decoder."""
PATCH = 8
"""Pixels on a side of an image patch."""
TILE = 32
"""Pixels on a side that a CLIP tower sees at once."""

TEXT = (
    'move the current number to target answer "thoughts": "action": right is smaller larger '
    "so I choose stand hit plus minus The a b c d x y - + 0 1 2 3 4 5 6 7 8 9 {} , . é ☃ 中"
)
"""Its words are what the tokenizers know in one piece."""


Component = Literal["vision_tower", "projector", "language_model"]
"""Parts that may have adapters."""


class Checkpoint(NamedTuple):
    """A folder, and what may be asked of the model in it."""

    name: str
    folder: str
    sees: bool
    """Reads images."""
    components: tuple[Component, ...]
    """The parts that may get adapters."""


# --- tokenizers ----------------------------------------------------------------------------


def id_of(tokenizer: PreTrainedTokenizerFast, token: str) -> int:
    """Of a token that it knows in one piece."""
    found = tokenizer.convert_tokens_to_ids(token)
    assert isinstance(found, int)
    return found


def byte_level_tokenizer(specials: Sequence[str], **settings: Any) -> PreTrainedTokenizerFast:
    """As GPT-2, Llama 3 and Qwen have it: bytes, a word keeps the space before it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=len(specials) + 256 + 100,
        special_tokens=list(specials),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT] * 3, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **settings)


def sentencepiece_tokenizer(specials: Sequence[str], **settings: Any) -> PreTrainedTokenizerFast:
    """As Llama 2 and Mistral have it: `▁` for a space and one before the first word, single
    bytes for what the vocabulary lacks. The first of `specials` stands for the unknown,
    the second opens every text."""
    raw_bytes = {f"<0x{byte:02X}>" for byte in range(256)}
    tokenizer = Tokenizer(models.BPE(unk_token=specials[0], byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    trainer = trainers.BpeTrainer(
        vocab_size=len(specials) + 256 + 160,
        special_tokens=[*specials, *sorted(raw_bytes)],
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT.encode("ascii", "ignore").decode()] * 3, trainer)
    # The trainer takes bytes for special tokens, which decoding would leave out.
    content = json.loads(tokenizer.to_str())
    content["added_tokens"] = [t for t in content["added_tokens"] if t["content"] not in raw_bytes]
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    opening = specials[1]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{opening} $A", special_tokens=[(opening, tokenizer.token_to_id(opening))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token=specials[0], bos_token=opening, **settings
    )


# --- what the decoders and towers have in common -------------------------------------------------


DECODER: dict[str, Any] = {
    "hidden_size": WIDTH,
    "intermediate_size": 2 * WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
    "initializer_range": WIDTH**-0.5,
}

CLIP = CLIPVisionConfig(
    hidden_size=WIDTH,
    intermediate_size=2 * WIDTH,
    num_hidden_layers=3,  # of which LLaVA reads the last but one, so that one is idle
    num_attention_heads=4,
    image_size=TILE,
    patch_size=PATCH,
    initializer_range=WIDTH**-0.5,
)


def decoder_config(tokenizer: PreTrainedTokenizerFast, **changes: Any) -> dict[str, Any]:
    ids = {
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    return DECODER | ids | changes


def write_model(make: Callable[[], PreTrainedModel], folder: Path) -> None:
    """Random weights, the same every time, sharpened until prompts matter."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = make()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(1.5)
    model.save_pretrained(folder)


def write_image_processor(image_processor: Any, folder: Path, processor: str) -> None:
    """In the form of the hub, where no backend is named."""
    content = image_processor.to_dict()
    kind = content["image_processor_type"].removesuffix("Pil")
    content |= {"image_processor_type": kind, "processor_class": processor}
    (folder / "preprocessor_config.json").write_text(json.dumps(content))


# --- vision-language models --------------------------------------------------------------------

LLAVA_SPECIALS = ("<unk>", "<s>", "</s>", "<image>")

# The turn of LLaVA-1.6-Mistral.
LLAVA_TEMPLATE = """\
{%- for message in messages -%}
{%- if message['role'] == 'user' %}[INST] {% endif -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'image' -%}{{ '<image>\n' }}{%- else -%}{{ part['text'] }}{%- endif -%}
{%- endfor -%}
{%- if message['role'] == 'user' %} [/INST]{% else %}</s>{% endif -%}
{%- endfor -%}"""


def write_llava(folder: Path) -> None:
    """LLaVA-1.5: CLIP tower, projector, Llama decoder."""
    tokenizer = sentencepiece_tokenizer(LLAVA_SPECIALS, eos_token="</s>", pad_token="<unk>")
    processor = LlavaProcessor(
        image_processor=CLIPImageProcessorPil(
            size={"shortest_edge": TILE}, crop_size={"height": TILE, "width": TILE}
        ),
        tokenizer=tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=LLAVA_TEMPLATE,
    )
    processor.save_pretrained(folder)
    config = LlavaConfig(
        vision_config=CLIP.to_dict(),
        text_config=LlamaConfig(**decoder_config(tokenizer)).to_dict(),
        image_token_index=id_of(tokenizer, "<image>"),
        vision_feature_layer=-2,
    )
    write_model(lambda: LlavaForConditionalGeneration(config), folder)


def write_llava_next(folder: Path) -> None:
    """LLaVA-1.6 with Mistral: an image is a thumbnail and as many tiles as its shape needs."""
    pinpoints = [[TILE, 2 * TILE], [2 * TILE, TILE], [2 * TILE, 2 * TILE]]
    tokenizer = sentencepiece_tokenizer(LLAVA_SPECIALS, eos_token="</s>", pad_token="<unk>")
    processor = LlavaNextProcessor(
        image_processor=LlavaNextImageProcessorPil(
            size={"shortest_edge": TILE},
            crop_size={"height": TILE, "width": TILE},
            image_grid_pinpoints=pinpoints,
        ),
        tokenizer=tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=LLAVA_TEMPLATE,
    )
    processor.save_pretrained(folder)
    text = MistralConfig(**decoder_config(tokenizer, sliding_window=None))
    config = LlavaNextConfig(
        vision_config=CLIP.to_dict(),
        text_config=text.to_dict(),
        image_token_index=id_of(tokenizer, "<image>"),
        image_grid_pinpoints=pinpoints,
        vision_feature_layer=-2,
    )
    write_model(lambda: LlavaNextForConditionalGeneration(config), folder)


QWEN_SPECIALS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)

QWEN_TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message['role'] + '\n' }}
{%- for part in message['content'] -%}
{%- if part['type'] == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>
{%- else -%}{{ part['text'] }}{%- endif -%}
{%- endfor -%}
<|im_end|>{{ '\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}<|im_start|>{{ 'assistant\n' }}{%- endif -%}"""


def qwen_ids(tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    return {
        "image_token_id": tokenizer.convert_tokens_to_ids("<|image_pad|>"),
        "video_token_id": tokenizer.convert_tokens_to_ids("<|video_pad|>"),
        "vision_start_token_id": tokenizer.convert_tokens_to_ids("<|vision_start|>"),
        "vision_end_token_id": tokenizer.convert_tokens_to_ids("<|vision_end|>"),
    }


def write_qwen_processor(folder: Path, processor: str) -> PreTrainedTokenizerFast:
    """Part by part: whole, it has a video part, which needs torchvision."""
    tokenizer = byte_level_tokenizer(
        QWEN_SPECIALS, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    tokenizer.chat_template = QWEN_TEMPLATE
    tokenizer.save_pretrained(folder)
    images = Qwen2VLImageProcessorPil(
        patch_size=PATCH,
        merge_size=2,
        size={"shortest_edge": (2 * PATCH) ** 2, "longest_edge": (8 * PATCH) ** 2},
    )
    write_image_processor(images, folder, processor)
    return tokenizer


def write_qwen25_vl(folder: Path) -> None:
    """Positions in three dimensions; as many image tokens as the image has patches; windowed
    attention in the vision tower."""
    tokenizer = write_qwen_processor(folder, "Qwen2_5_VLProcessor")
    config = Qwen2_5_VLConfig(
        vision_config={
            "depth": 2,
            "hidden_size": WIDTH,
            "intermediate_size": 2 * WIDTH,
            "num_heads": 4,
            "patch_size": PATCH,
            "window_size": 4 * PATCH,
            "fullatt_block_indexes": [1],
            "out_hidden_size": WIDTH,
            "initializer_range": WIDTH**-0.5,
        },
        text_config=decoder_config(
            tokenizer,
            rope_parameters={
                "rope_type": "default",
                "rope_theta": 10000.0,
                "mrope_section": [2, 1, 1],
            },
        ),
        **qwen_ids(tokenizer),
    )
    write_model(lambda: Qwen2_5_VLForConditionalGeneration(config), folder)


def write_qwen3_vl(folder: Path) -> None:
    """As Qwen2.5-VL, with image features added in the first decoder layers, too."""
    tokenizer = write_qwen_processor(folder, "Qwen3VLProcessor")
    config = Qwen3VLConfig(
        vision_config={
            "depth": 2,
            "hidden_size": WIDTH,
            "intermediate_size": 2 * WIDTH,
            "num_heads": 4,
            "patch_size": PATCH,
            "num_position_embeddings": 16,
            "deepstack_visual_indexes": [0],
            "out_hidden_size": WIDTH,
            "initializer_range": WIDTH**-0.5,
        },
        text_config=decoder_config(
            tokenizer,
            head_dim=WIDTH // 4,
            rope_parameters={
                "rope_type": "default",
                "rope_theta": 10000.0,
                "mrope_section": [2, 1, 1],
                "mrope_interleaved": True,
            },
        ),
        **qwen_ids(tokenizer),
    )
    write_model(lambda: Qwen3VLForConditionalGeneration(config), folder)


# --- text-only models ------------------------------------------------------------------------


def write_gpt2(folder: Path) -> None:
    """A base model: learned positions, no chat template, no padding token."""
    tokenizer = byte_level_tokenizer(["<|endoftext|>"], eos_token="<|endoftext|>")
    tokenizer.save_pretrained(folder)
    end = id_of(tokenizer, "<|endoftext|>")
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=256,
        n_embd=WIDTH,
        n_layer=2,
        n_head=4,
        bos_token_id=end,
        eos_token_id=end,
        initializer_range=WIDTH**-0.5,
    )
    write_model(lambda: GPT2LMHeadModel(config), folder)


LLAMA_TEMPLATE = """\
{{- bos_token -}}
{%- for message in messages -%}
{{- '<|' + message['role'] + '|>' + message['content'] + '<|turn|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"""


def write_llama(folder: Path) -> None:
    """More ids than its tokenizer knows, and two tokens that end a turn."""
    tokenizer = sentencepiece_tokenizer(
        ["<unk>", "<s>", "</s>", "<|turn|>", "<|user|>", "<|assistant|>"], eos_token="</s>"
    )
    tokenizer.chat_template = LLAMA_TEMPLATE
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(**decoder_config(tokenizer, vocab_size=len(tokenizer) + 24))
    write_model(lambda: LlamaForCausalLM(config), folder)
    stop_ids = [tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("<|turn|>")]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": stop_ids}))


def write_mistral(folder: Path, window: int = 512) -> None:
    """Attention reaches back `window` tokens."""
    tokenizer = sentencepiece_tokenizer(["<unk>", "<s>", "</s>"], eos_token="</s>")
    tokenizer.chat_template = LLAVA_TEMPLATE
    tokenizer.save_pretrained(folder)
    config = MistralConfig(**decoder_config(tokenizer, sliding_window=window))
    write_model(lambda: MistralForCausalLM(config), folder)


VISION: tuple[Component, ...] = ("vision_tower", "projector", "language_model")

ARCHITECTURES: dict[str, tuple[Callable[[Path], None], tuple[Component, ...]]] = {
    "llava": (write_llava, VISION),
    "llava_next": (write_llava_next, VISION),
    "qwen2_5_vl": (write_qwen25_vl, VISION),
    "qwen3_vl": (write_qwen3_vl, VISION),
    "gpt2": (write_gpt2, ("language_model",)),
    "llama": (write_llama, ("language_model",)),
    "mistral": (write_mistral, ("language_model",)),
}


def write_checkpoint(name: str, folder: Path) -> Checkpoint:
    """Writes the named architecture's checkpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    write, components = ARCHITECTURES[name]
    write(folder)
    return Checkpoint(name, str(folder), "vision_tower" in components, components)
