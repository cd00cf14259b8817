"""What a training run asks of whatever it trains."""

from pathlib import Path
from typing import Protocol

from torch import nn


class Trainable(Protocol):
    """A policy whose weights an optimizer moves and a checkpoint holds."""

    @property
    def module(self) -> nn.Module:
        """Parameters that require a gradient are trained."""
        ...

    def save(self, folder: Path) -> None:
        """Writes what is needed to act again."""
        ...
