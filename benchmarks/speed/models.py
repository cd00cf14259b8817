"""Small random models of five architectures, with decoders of one size."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    CLIPVisionConfig,
    GPT2Config,
    LlamaConfig,
    LlavaNextConfig,
    MistralConfig,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLConfig

from forethought.models.loading import LoadedModel
from forethought.models.tiny import TinySize, make_tiny, train_tokenizer

VOCABULARY = 1024
TEXT = "look think act learn card number target sum formula choose"


class NamedModel(NamedTuple):
    name: str
    loaded: LoadedModel


def make_models() -> Iterator[NamedModel]:
    """The tiny model, which reads images; then, of words alone, other families' decoders."""
    yield NamedModel("tiny", make_tiny([TEXT] * 2, seed=0))
    for name, config in _configs().items():
        is_text = name in ("llama", "gpt2")
        kind: Any = AutoModelForCausalLM if is_text else AutoModelForImageTextToText
        model: PreTrainedModel = kind.from_config(config, attn_implementation="sdpa")
        yield NamedModel(name, LoadedModel(model, train_tokenizer([TEXT] * 2)))


def _configs() -> dict[str, PretrainedConfig]:
    size = TinySize()
    ids: dict[str, Any] = {"vocab_size": VOCABULARY, "bos_token_id": None, "eos_token_id": 1}
    decoder: dict[str, Any] = ids | {
        "hidden_size": size.hidden_size,
        "intermediate_size": size.intermediate_size,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.heads,
        "max_position_embeddings": size.max_positions,
    }
    rotary = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [8, 4, 4]}
    idle_tower = CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2
    )
    return {
        "llama": LlamaConfig(**decoder),
        "gpt2": GPT2Config(**ids, n_embd=size.hidden_size, n_layer=size.layers, n_head=size.heads),
        "llava_next": LlavaNextConfig(
            vision_config=idle_tower.to_dict(),
            text_config=MistralConfig(**decoder, sliding_window=None).to_dict(),
            image_token_index=5,
        ),
        "qwen2_5_vl": Qwen2_5_VLConfig(
            vision_config={"depth": 1, "hidden_size": 32, "num_heads": 2, "out_hidden_size": 128},
            text_config=decoder | {"rope_parameters": rotary},
            image_token_id=5,
            video_token_id=4,
        ),
    }
