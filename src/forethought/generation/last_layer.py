"""Spares the decoder's last layer what nobody reads.

Of a prompt that goes through the model only the last position is read. All layers but the
last need every position, for the keys and values of the next; the last layer's perceptron,
most of its work, needs that one position alone. A quarter of a prompt's cost in a model of
four layers is its last layer; in a model of forty there is little to spare.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from forethought.models.lora import component_of


class LastLayer:
    """The last perceptron of a model's decoder, where it can be found by its usual name."""

    def __init__(self, model: PreTrainedModel, *, layers: int) -> None:
        """
        Args:
            layers: of the decoder.
        """
        self._perceptron = _find_perceptron(model, layers)

    @contextmanager
    def only_at(self, ends_B: Tensor) -> Generator[None]:
        """Within: of each row only this position is right, the others are not to be read."""
        if self._perceptron is None:
            yield
            return
        shape: list[torch.Size] = []
        rows_B = torch.arange(len(ends_B), device=ends_B.device)

        def take(module: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
            hidden_BLH, *others = arguments
            shape.append(hidden_BLH.shape)
            return (hidden_BLH[rows_B, ends_B][:, None], *others)

        def put_back(module: nn.Module, arguments: object, output_B1H: Tensor) -> Tensor:
            whole_BLH = output_B1H.new_zeros(shape.pop())
            whole_BLH[rows_B, ends_B] = output_B1H[:, 0]
            return whole_BLH

        hooks = (
            self._perceptron.register_forward_pre_hook(take),
            self._perceptron.register_forward_hook(put_back),
        )
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


def _find_perceptron(model: PreTrainedModel, layers: int) -> nn.Module | None:
    for path, module in model.named_modules():
        is_decoder = (
            component_of(path) == "language_model" and len(list(module.children())) == layers
        )
        if is_decoder and isinstance(module, nn.ModuleList):
            found = getattr(module[-1], "mlp", None)
            return found if isinstance(found, nn.Module) else None
    return None
