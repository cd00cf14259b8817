"""A path or a hub id to a model and its processor."""

import importlib.util
import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from peft import PeftModel
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoProcessor,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
from transformers.processing_utils import ProcessorMixin

from forethought.errors import PolicyError

ADAPTER_CONFIG = "adapter_config.json"


class LoadedModel(NamedTuple):
    model: PreTrainedModel
    processor: ProcessorMixin | PreTrainedTokenizerBase
    adapter: PeftModel | None = None
    """PEFT's view of the model, where LoRA adapters sit in it: saves them, switches them off."""

    @property
    def preferred_image_size(self) -> int | None:
        """Pixels on a side of a fixed-size vision tower smaller than the worlds' own
        pictures; None where the model takes those."""
        image_processor = getattr(self.processor, "image_processor", None)
        height = getattr(getattr(image_processor, "size", None), "height", None)
        return height if isinstance(height, int) and height < 300 else None


def load_pretrained(source: str, *, dtype: torch.dtype = torch.float32) -> LoadedModel:
    """Loads a folder written by `save_pretrained`, or a model of the hub.

    A folder that holds a LoRA adapter names its base model, which is loaded first.

    Raises:
        PolicyError: nothing there, or nothing that these architectures can read.
    """
    adapter = Path(source) / ADAPTER_CONFIG
    base = (
        json.loads(adapter.read_text())["base_model_name_or_path"] if adapter.exists() else source
    )
    try:
        config: Any = AutoConfig.from_pretrained(base)
        sees = type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
        auto = AutoModelForImageTextToText if sees else AutoModelForCausalLM
        # Scaled-dot-product attention takes the decode loop's masks; flash-attention does not.
        model: Any = auto.from_pretrained(base, dtype=dtype, attn_implementation="sdpa")
        processor = _load_processor(source if Path(source).exists() else base, sees)
        if adapter.exists():
            adapted = PeftModel.from_pretrained(model, source, is_trainable=True)
            # The adapters now sit inside the model, which keeps its own class and methods.
            return LoadedModel(model, processor, adapted)
    except (OSError, ValueError, KeyError) as error:
        raise PolicyError(_explain(source, error)) from error
    return LoadedModel(model, processor)


def _load_processor(source: str, sees: bool) -> ProcessorMixin | PreTrainedTokenizerBase:
    if not sees:
        tokenizer = AutoTokenizer.from_pretrained(source)
        assert isinstance(tokenizer, PreTrainedTokenizerBase)
        return tokenizer
    # Without torchvision the image processors' Pillow backend must be asked for by name.
    has_torchvision = importlib.util.find_spec("torchvision") is not None
    backend = {} if has_torchvision else {"backend": "pil"}
    processor = AutoProcessor.from_pretrained(source, **backend)
    assert isinstance(processor, ProcessorMixin)
    return processor


def _explain(source: str, error: Exception) -> str:
    first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if Path(source).is_dir():
        return f"model {source}: cannot be loaded: {first_line}"
    return (
        f"model {source!r} is neither a folder here nor a model that can be fetched from the hub "
        f'({first_line}) — pass a folder, a hub id, a run folder, or "tiny"'
    )
