"""The reference policy: the model as it was when the run began, beside the one that is trained.

There is never a second model. What training does not change is shared; of what it does
change, the reference is

- with LoRA adapters that were randomly initialized: the model with its adapters switched off;
- otherwise a frozen copy of the trained weights alone, put into the model's place while the
  reference is asked, and taken out again.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from forethought.errors import CheckpointError
from forethought.generation.huggingface import HuggingFacePolicy

REFERENCE_FILE = "reference.safetensors"
ANCHOR_FILE = "anchor.safetensors"
"""File of a second reference, which stays where the run started while the first one is
refreshed."""
_ADAPTER_START = "lora_B"
"""The matrices that are zero until an adapter has learned something."""


class Reference:
    """π_ref: asked through the policy's own module, in the same way as the policy."""

    def __init__(self, policy: HuggingFacePolicy, frozen: dict[str, Tensor] | None) -> None:
        """
        Args:
            policy: whose weights are trained. Its critic is no part of the reference.
            frozen: by name, the trained weights as the reference has them; None: adapters off.
        """
        self._policy = policy
        self._frozen = frozen

    @property
    def is_adapter_off(self) -> bool:
        """Whether it needs no memory: the policy with its adapters switched off."""
        return self._frozen is None

    @contextmanager
    def in_place(self) -> Generator[None]:
        """Inside, the policy's module has the reference's weights.

        To be scored with, not to be trained or to generate: the decode loop keeps what it
        computed with the policy's weights.
        """
        if self._frozen is None:
            assert self._policy.adapter is not None
            with self._policy.adapter.disable_adapter():
                yield
            return
        self._swap(self._frozen)
        try:
            yield
        finally:
            self._swap(self._frozen)

    def refresh(self) -> None:
        """From now on the reference is the policy as it is at this moment."""
        self._frozen = copy_of_trained(self._policy.module.model)

    def save(self, folder: Path, file: str = REFERENCE_FILE) -> None:
        """Writes what a resumed run cannot know: nothing where the adapters are switched off."""
        if self._frozen is not None:
            save_file(self._frozen, folder / file)

    def _swap(self, frozen: dict[str, Tensor]) -> None:
        """Exchanges what the parameters hold; the optimizer's references stay good."""
        for name, parameter in trained_parameters(self._policy.module.model).items():
            parameter.data, frozen[name] = frozen[name], parameter.data


def start_reference(policy: HuggingFacePolicy) -> Reference:
    """The reference of a run that begins: the policy as it is."""
    model = policy.module.model
    if policy.adapter is not None and is_without_effect(model):
        return Reference(policy, None)
    return Reference(policy, copy_of_trained(model))


def load_reference(
    policy: HuggingFacePolicy, folder: Path, file: str = REFERENCE_FILE
) -> Reference:
    """The reference that a checkpoint holds.

    Raises:
        CheckpointError: it belongs to other weights than the policy trains.
    """
    path = folder / file
    if not path.exists():
        if policy.adapter is None:
            raise CheckpointError(
                f"{folder}: got no {file}, which a run without adapters needs — "
                "expected a checkpoint of a run with a reference policy"
            )
        return Reference(policy, None)
    frozen = load_file(path)
    trained = trained_parameters(policy.module.model)
    if (shapes := _shapes(frozen)) != _shapes(trained):
        different = sorted(dict(shapes.items() ^ _shapes(trained).items()))[0]
        raise CheckpointError(
            f"{path}: got other weights than this run trains, {different} for one — "
            "resume with the settings that the run was started with"
        )
    placed = {name: tensor.to(trained[name].device) for name, tensor in frozen.items()}
    return Reference(policy, placed)


def trained_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """By name, those that an optimizer moves."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def copy_of_trained(model: nn.Module) -> dict[str, Tensor]:
    """What they hold now, without gradient."""
    return {name: p.detach().clone() for name, p in trained_parameters(model).items()}


def is_without_effect(model: nn.Module) -> bool:
    """Whether all that is trained are adapters that have not learned anything yet."""
    trained = trained_parameters(model)
    outputs = [p for name, p in trained.items() if _ADAPTER_START in name]
    only_adapters = all("lora_" in name for name in trained)
    return only_adapters and bool(outputs) and not any(torch.count_nonzero(p) for p in outputs)


def _shapes(tensors: dict[str, Tensor] | dict[str, nn.Parameter]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}
