"""A path or a hub id to a model and its processor; the settings that are saved beside them."""

import importlib.util
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from peft import PeftModel
from safetensors import SafetensorError
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
from transformers.models.auto.processing_auto import PROCESSOR_MAPPING
from transformers.processing_utils import ProcessorMixin

from forethought.errors import PolicyError
from forethought.models.lora import load_lora, outline_lora
from forethought.models.model_files import NO_CODE, folder_of, require_source

PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
ADAPTER_CONFIG = "adapter_config.json"
BEHAVIOR = "behavior"
"""Folder of π_φ inside the model of a run that learns values beside it."""


_HOW_LOADED = ("backend", "is_local", "local_files_only")
_SETS = ("target_modules", "modules_to_save")
_DTYPE = "dtype"
_IMPLIED = "float32"
"""What weights without a named type are."""


class LoadedModel(NamedTuple):
    """A model with what makes its inputs, and the adapters in it."""

    model: PreTrainedModel
    processor: ProcessorMixin | PreTrainedTokenizerBase
    adapter: PeftModel | None = None
    """PEFT's view of the model, where LoRA adapters sit in it: saves them, switches them off."""

    @property
    def preferred_image_size(self) -> int | None:
        """Pixels on a side of a fixed-size vision tower smaller than the environments' own
        images; None where the model takes those."""
        image_processor = getattr(self.processor, "image_processor", None)
        height = getattr(getattr(image_processor, "size", None), "height", None)
        return height if isinstance(height, int) and height < 300 else None


def load_pretrained(source: str, *, dtype: torch.dtype = torch.float32) -> LoadedModel:
    """Loads a folder written by `save_pretrained`, or a model of the hub.

    A folder that holds a LoRA adapter names its base model, which is loaded first. Of one that
    holds a policy and its values, the policy is loaded.

    Raises:
        PolicyError: nothing there, or nothing that these architectures can read.
    """
    with _errors_explained(source):
        found = _find(source)
        # Scaled-dot-product attention takes the decode loop's masks; flash-attention does not.
        require_safetensors(found.base)
        model: PreTrainedModel = found.kind.from_pretrained(
            found.base, dtype=dtype, attn_implementation="sdpa", use_safetensors=True, **NO_CODE
        )
        # By this adapters name what they sit in: as a person named it, not where it is cached.
        model.name_or_path = found.name
        # The adapters then sit inside the model, which keeps its own class and methods.
        if found.has_adapter:
            require_safetensors(found.source)
        adapter = load_lora(model, found.source) if found.has_adapter else None
        return LoadedModel(model, found.processor, adapter)


def load_outline(source: str) -> LoadedModel:
    """The same model without weights (on torch's meta device): what a plan needs to know of
    it. Of a model of the hub, only the small files are fetched.

    Raises:
        PolicyError: as `load_pretrained`.
    """
    with _errors_explained(source):
        found = _find(source)
        with torch.device("meta"):
            model: PreTrainedModel = found.kind.from_config(found.config)
            adapter = outline_lora(model, found.source) if found.has_adapter else None
        return LoadedModel(model, found.processor, adapter)


class _Found(NamedTuple):
    """What the small files of a model say."""

    source: str
    """Where they are."""
    name: str
    """What the weights are called, less those of an adapter."""
    base: str
    """Where they are."""
    has_adapter: bool
    config: Any
    kind: Any
    """The class that makes the model."""
    processor: ProcessorMixin | PreTrainedTokenizerBase


def _find(source: str) -> _Found:
    behavior = Path(source) / BEHAVIOR
    source = str(behavior) if behavior.is_dir() else source
    adapter = Path(source) / ADAPTER_CONFIG
    has_adapter = adapter.exists()
    named = _base_of(adapter) if has_adapter else source
    base = folder_of(named)
    try:
        require_source(base)
    except PolicyError as error:
        if not has_adapter:
            raise
        raise PolicyError(f"{source} holds adapters without their base: {error}") from error
    config = AutoConfig.from_pretrained(base, **NO_CODE)
    sees = type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    kind = AutoModelForImageTextToText if sees else AutoModelForCausalLM
    processor = _load_processor(source if Path(source).exists() else base, config, sees)
    return _Found(source, named, base, has_adapter, config, kind, processor)


def _base_of(adapter: Path) -> str:
    """The model that adapters belong to."""
    settings: dict[str, Any] = json.loads(adapter.read_text())
    if settings.get("megatron_config") is not None:
        raise PolicyError(
            f"{adapter}: megatron_config names a module that would be imported, which is never "
            "done — remove it, or choose other adapters"
        )
    return str(settings["base_model_name_or_path"])


def _load_processor(
    source: str, config: Any, sees: bool
) -> ProcessorMixin | PreTrainedTokenizerBase:
    if not sees:
        tokenizer = AutoTokenizer.from_pretrained(source, **NO_CODE)
        assert isinstance(tokenizer, PreTrainedTokenizerBase)
        return tokenizer
    if importlib.util.find_spec("torchvision") is not None:
        processor = AutoProcessor.from_pretrained(source, **NO_CODE)
    else:
        # The image processors' Pillow backend must then be asked for by name.
        kind = _without_video(PROCESSOR_MAPPING[type(config)])
        processor = kind.from_pretrained(source, backend="pil", **NO_CODE)
    assert isinstance(processor, ProcessorMixin)
    return processor


def _without_video(kind: Any) -> Any:
    """A processor class less its video part (Qwen-VL's have one), which needs torchvision."""
    parts: list[str] = [part for part in kind.get_attributes() if part != "video_processor"]

    def get_attributes() -> list[str]:
        return parts

    return type(kind.__name__, (kind,), {"get_attributes": staticmethod(get_attributes)})


@contextmanager
def _errors_explained(source: str) -> Generator[None]:
    try:
        yield
    except (ImportError, OSError, ValueError, KeyError, SafetensorError) as error:
        raise PolicyError(_explain(source, error)) from error


def _explain(source: str, error: Exception) -> str:
    first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if "trust_remote_code" in str(error) or "contains custom code" in str(error):
        return (
            f"model {source}: would have to run Python from its own folder (auto_map), which is "
            "never done — choose a model whose architecture is part of transformers"
        )
    return f"model {source}: cannot be loaded: {first_line}"


def require_safetensors(source: str) -> None:
    """Refuses a folder whose weights are pickled: reading them would run what they hold.

    Raises:
        PolicyError: naming a file, and how to convert it.
    """
    folder = Path(source)
    if not folder.is_dir() or any(folder.glob("*.safetensors")):
        return
    pickled = sorted(path.name for kind in PICKLED for path in folder.glob(kind))
    if pickled:
        raise PolicyError(
            f"model {source}: its weights are pickled ({pickled[0]}), and reading them could run "
            "code — if you trust them, write them as safetensors: load the folder with "
            "transformers and call save_pretrained"
        )


def settle(folder: Path) -> None:
    """Rewrites the JSON files of settings in a folder of `save_pretrained`, so that they are the
    same however the model came into memory.

    Hugging Face notes in them how a model was loaded, and PEFT writes lists in the order of a set.
    A model that was saved, loaded and saved again would differ from one that never left memory,
    though no number of it does.

    Raises:
        OSError: the disk refuses.
    """
    for name in ("config.json", "tokenizer_config.json", "adapter_config.json"):
        path = folder / name
        if path.exists():
            content: object = json.loads(path.read_text(encoding="utf-8"))
            text = json.dumps(_settled(content), indent=2, sort_keys=True, ensure_ascii=False)
            path.write_text(text + "\n", encoding="utf-8")


def _settled(value: object) -> object:
    if isinstance(value, list):
        return [_settled(item) for item in cast(list[object], value)]
    if not isinstance(value, dict):
        return value
    content = cast(dict[str, Any], value)
    return {
        name: sorted(item) if name in _SETS and isinstance(item, list) else _settled(item)
        for name, item in content.items()
        if name not in _HOW_LOADED and not (name == _DTYPE and item == _IMPLIED)
    }
