"""Which weights a server answers with: a model, its adapters by name, newer ones from disk."""

import threading
from pathlib import Path
from typing import Protocol

from peft import PeftModel
from safetensors import SafetensorError

from forethought.errors import PolicyError
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.loading import ADAPTER_CONFIG, require_safetensors
from forethought.models.lora import activate_adapter, load_adapter, unload_adapter
from forethought.models.model_files import NO_CODE

_LOADING = threading.Lock()
"""Transformers changes torch for the whole process while it loads a model."""


class Weights(Protocol):
    """Whose weights can be exchanged, between two answers."""

    @property
    def adapters(self) -> tuple[str, ...]:
        """Names of the adapters that are loaded, the oldest first."""
        ...

    @property
    def version(self) -> str | None:
        """Version of the model's own weights, if they were ever exchanged."""
        ...

    def select(self, adapter: str | None) -> None:
        """Answers with these adapters from now on, or with the model as it was loaded."""
        ...

    def load_adapter(self, name: str, path: Path) -> None:
        """Loads adapters under a name.

        Raises:
            PolicyError: there are none, they do not fit, or the name is in use already.
        """
        ...

    def unload_adapter(self, name: str) -> None:
        """Forgets adapters.

        Raises:
            PolicyError: none of this name are loaded.
        """
        ...

    def reload(self, path: Path, version: str | None) -> None:
        """Reads all weights from a folder.

        Raises:
            PolicyError: there are none, or they do not fit; the old ones are still there.
        """
        ...


class ServedWeights:
    """Weights of a Hugging Face model; satisfies `Weights`. Used by one thread alone."""

    def __init__(self, policy: HuggingFacePolicy) -> None:
        self._policy = policy
        own = None if policy.adapter is None else policy.adapter.active_adapter
        self._own = own if isinstance(own, str) else None
        """The adapters that the model was loaded with."""
        self._adapters: list[str] = []
        self._version: str | None = None
        self._selected: str | None = None

    @property
    def adapters(self) -> tuple[str, ...]:
        return tuple(self._adapters)

    @property
    def version(self) -> str | None:
        return self._version

    def select(self, adapter: str | None) -> None:
        if adapter == self._selected:
            return
        self._selected = adapter
        self._activate()

    def load_adapter(self, name: str, path: Path) -> None:
        if name == self._own or not (path / ADAPTER_CONFIG).is_file():
            raise PolicyError(f"{path}: got no adapters to load as {name!r}")
        if name in self._adapters:
            raise PolicyError(f"adapter {name!r} is loaded already")
        require_safetensors(str(path))
        policy = self._policy
        try:
            policy.adapter = load_adapter(policy.module.model, policy.adapter, name, str(path))
        except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
            first = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise PolicyError(f"{path}: these adapters do not fit the model: {first}") from error
        finally:
            self._activate()
        self._adapters.append(name)

    def unload_adapter(self, name: str) -> None:
        if name not in self._adapters:
            raise PolicyError(f"adapter {name!r} is not loaded")
        assert isinstance(self._policy.adapter, PeftModel)
        unload_adapter(self._policy.adapter, name)
        self._adapters.remove(name)
        if name == self._selected:
            self._selected = None
        self._activate()

    def reload(self, path: Path, version: str | None) -> None:
        model = self._policy.module.model
        if version is not None and version == self._version:
            return  # Another client was faster.
        if self._policy.adapter is not None:
            raise PolicyError(f"{path}: this model has adapters — load new adapters instead")
        try:
            require_safetensors(str(path))
            with _LOADING:
                fresh = type(model).from_pretrained(
                    str(path),
                    dtype=model.dtype,
                    use_safetensors=True,
                    local_files_only=True,
                    **NO_CODE,
                )
            model.load_state_dict(fresh.state_dict())
        except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
            first = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise PolicyError(f"{path}: these weights do not fit the model: {first}") from error
        self._version = version
        self._policy.weights_changed()

    def _activate(self) -> None:
        """Puts the selected adapters to work, and drops what others have computed."""
        adapter = self._policy.adapter
        name = self._selected or self._own
        if adapter is not None:
            activate_adapter(adapter, name)
        self._policy.weights_changed()
