"""Low-rank adapters on the named parts of any model (PEFT does the work)."""

import re
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from peft import LoraConfig as PeftLoraConfig
from peft import PeftConfig, PeftModel, get_peft_model
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from forethought.configs.parts import LoraConfig
from forethought.errors import ConfigError

# Looked for in a layer's path, in this order; what matches none is the language model.
# Qwen-VL calls its projector "merger" and keeps it inside the vision tower.
_PATTERNS = (
    ("projector", re.compile(r"projector|merger|connector")),
    ("vision_tower", re.compile(r"vision|visual|image_encoder")),
)


def component_of(path: str) -> str:
    """Which part of a vision-language model a layer's dotted path belongs to."""
    for name, pattern in _PATTERNS:
        if pattern.search(path):
            return name
    return "language_model"


def linear_layers(model: PreTrainedModel, components: Sequence[str]) -> list[str]:
    """Dotted paths of the linear layers of these parts, the vocabulary projection excepted.

    Raises:
        ConfigError: the model has no such part.
    """
    head = model.get_output_embeddings()
    paths = [
        path
        for path, module in model.named_modules()
        if isinstance(module, nn.Linear | Conv1D) and module is not head
    ]
    for component in components:
        if not any(component_of(path) == component for path in paths):
            present = ", ".join(sorted({component_of(path) for path in paths}))
            raise ConfigError(
                f"lora.components has {component!r}, which {type(model).__name__} lacks — "
                f"it has: {present}"
            )
    return [path for path in paths if component_of(path) in components]


def add_lora(model: PreTrainedModel, config: LoraConfig, *, seed: int) -> PeftModel:
    """Puts adapters into the model, in place, and freezes everything else.

    Initially they change nothing: the first matrix of each is random, the second zero.

    Raises:
        ConfigError: the model lacks a part that is to have adapters, or is stored nowhere.
    """
    paths = linear_layers(model, config.components)
    if not model.name_or_path:
        raise ConfigError(
            "lora.components: adapters are stored without the model under them, and this model "
            "is randomly initialized — train it whole, then pass its run folder as `model`"
        )
    settings: Any = PeftLoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=config.dropout,
        target_modules=paths,
        fan_in_fan_out=all(isinstance(model.get_submodule(path), Conv1D) for path in paths),
    )
    # PEFT initializes from the global generator: borrow it, and give it back.
    with _deprecated_words_ignored(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return cast(PeftModel, get_peft_model(model, settings))


def components_of(model: PreTrainedModel) -> tuple[str, ...]:
    """Parts of a model that adapters sit on."""
    paths = (path for path, _ in model.named_parameters() if ".lora_A." in path)
    return tuple(sorted({component_of(path) for path in paths}))


def save_weights(model: PreTrainedModel, adapter: PeftModel | None, folder: Path) -> None:
    """Writes a model, or of one with adapters those alone.

    Adapters never sit on the vocabulary. PEFT would ask the hub whether it has grown.
    """
    if adapter is None:
        model.save_pretrained(str(folder))
    else:
        adapter.save_pretrained(str(folder), save_embedding_layers=False)


def load_lora(model: PreTrainedModel, folder: str) -> PeftModel:
    """Puts saved adapters back into the model that they were trained on, in place."""
    with _deprecated_words_ignored():
        return PeftModel.from_pretrained(model, folder, is_trainable=True)


def load_adapter(
    model: PreTrainedModel, adapter: PeftModel | None, name: str, folder: str
) -> PeftModel:
    """Loads saved adapters to act with, under a name, beside those that the model has."""
    with _deprecated_words_ignored():
        if adapter is None:
            return PeftModel.from_pretrained(model, folder, adapter_name=name)
        adapter.load_adapter(folder, adapter_name=name)
        return adapter


def activate_adapter(adapter: PeftModel, name: str | None) -> None:
    """Puts the adapters of this name to work; None: none, the model answers as it is."""
    model: Any = adapter.base_model
    if name is None:
        model.disable_adapter_layers()
    else:
        model.enable_adapter_layers()
        adapter.set_adapter(name)


def unload_adapter(adapter: PeftModel, name: str) -> None:
    """Forgets the adapters of this name. Which others act is to be said again."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*was active which is now deleted", UserWarning)
        adapter.delete_adapter(name)


def outline_lora(model: PreTrainedModel, folder: str) -> PeftModel:
    """Puts adapters of the saved ones' shapes into the model, without their weights."""
    with _deprecated_words_ignored():
        return cast(PeftModel, get_peft_model(model, PeftConfig.from_pretrained(folder)))


@contextmanager
def _deprecated_words_ignored() -> Generator[None]:
    """PEFT asks transformers for what is called `is_activation_checkpointing` by now."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*is_gradient_checkpointing", FutureWarning)
        yield
