"""A trained model's vision tower as a fixed description of images."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoImageProcessor, AutoModel

from forethought.errors import PolicyError
from forethought.models.loading import load_pretrained
from forethought.models.model_files import NO_CODE
from forethought.types import Image

_AT_A_TIME = 256
"""Images in one forward pass."""

Pooling = Literal["flatten", "mean"]


class FrozenFeatures:
    """Images to vectors, by weights that are never trained."""

    def __init__(self, tower: nn.Module, image_processor: Any, pooling: Pooling) -> None:
        """
        Args:
            tower: gives `last_hidden_state`, [B, patches, width], of `pixel_values`.
            pooling: all patches side by side, or their mean.
        """
        self._tower: Any = tower.eval().requires_grad_(False)
        self._image_processor = image_processor
        self._pooling = pooling

    @torch.no_grad()
    def __call__(self, images: Sequence[Image]) -> Tensor:
        """Features [B, F], each image's of mean 0 and variance 1, fp32."""
        parts = [
            self._features(images[first : first + _AT_A_TIME])
            for first in range(0, len(images), _AT_A_TIME)
        ]
        return torch.cat(parts)

    def _features(self, images: Sequence[Image]) -> Tensor:
        pixels_BCHW = self._image_processor(images=list(images), return_tensors="pt")[
            "pixel_values"
        ]
        patches_BPF: Tensor = self._tower(pixels_BCHW.to(self._tower.device)).last_hidden_state
        pooled_BF = patches_BPF.mean(1) if self._pooling == "mean" else patches_BPF.flatten(1)
        return functional.layer_norm(pooled_BF.float(), pooled_BF.shape[1:])

    def to(self, device: torch.device) -> None:
        """Moves the weights."""
        self._tower.to(device)

    def save(self, folder: Path) -> None:
        """Writes tower and image processor."""
        self._tower.save_pretrained(str(folder))
        self._image_processor.save_pretrained(str(folder))


def load_frozen(folder: Path, pooling: Pooling) -> FrozenFeatures:
    """What `FrozenFeatures.save` wrote."""
    # The image processors' Pillow backend must be asked for by name.
    has_torchvision = importlib.util.find_spec("torchvision") is not None
    backend = {} if has_torchvision else {"backend": "pil"}
    processor = AutoImageProcessor.from_pretrained(str(folder), **backend, **NO_CODE)
    tower = AutoModel.from_pretrained(str(folder), use_safetensors=True, **NO_CODE)
    return FrozenFeatures(tower, processor, pooling)


class Source(NamedTuple):
    features: FrozenFeatures
    preferred_image_size: int | None
    """Pixels on a side, where the tower's images are small."""


def take_tower(source: str, pooling: Pooling) -> Source:
    """The vision tower of a model's folder or hub id.

    Raises:
        PolicyError: it cannot be loaded, or has no vision tower that takes one image of
            one size at a time.
    """
    loaded = load_pretrained(source)
    whole: Any = loaded.model
    if loaded.adapter is not None:
        whole = loaded.adapter.merge_and_unload()
    towers = [part for name, part in whole.named_modules() if name.endswith("vision_tower")]
    image_processor = getattr(loaded.processor, "image_processor", None)
    if not towers or image_processor is None:
        raise PolicyError(
            f"model {source}: has no vision tower whose features could be used — expected a model "
            'of the LLaVA family, or "cnn"'
        )
    features = FrozenFeatures(towers[0], image_processor, pooling)
    return Source(features, loaded.preferred_image_size)
