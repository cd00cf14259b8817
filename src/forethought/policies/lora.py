"""Low-rank adapters on the named parts of any model (PEFT does the work)."""

import re
from collections.abc import Sequence
from typing import Any

from peft import LoraConfig as PeftLoraConfig
from peft import PeftModel, get_peft_model
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from forethought.config import LoraConfig
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


def add_lora(model: PreTrainedModel, config: LoraConfig) -> PeftModel:
    """Puts adapters into the model, in place, and freezes everything else.

    Initially they change nothing: the second matrix of each is zero.
    """
    settings: Any = PeftLoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=config.dropout,
        target_modules=linear_layers(model, config.components),
    )
    adapted = get_peft_model(model, settings)
    assert isinstance(adapted, PeftModel)
    return adapted
