"""Weights on a shared disk: what a trainer writes and engines read, whole or absent.

adapters/v{N}/     LoRA adapters after N updates
weights/v{N}/      or all weights
current.json       what is published at present, which workers read
"""

import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

from safetensors import SafetensorError

from forethought.durable import publish
from forethought.errors import StorageError
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.lora import components_of, save_weights

CURRENT = "current.json"


@dataclass(frozen=True)
class Weights:
    """One published state of a policy; the critic is no part of it."""

    version: int
    """Updates that they have seen."""
    name: str
    """Tells them from any others: a digest of their content, and the version. Engines serve
    adapters by this name, and say of all weights that they are these."""
    path: str
    is_adapter: bool
    components: tuple[str, ...] = ()
    """Parts of the model that the adapters are on."""


class Publisher:
    """Writes a policy's weights where engines read them."""

    def __init__(self, policy: HuggingFacePolicy, folder: Path, *, keep: int) -> None:
        """
        Args:
            keep: how many versions stay on the disk, the newest included.
        """
        self._policy = policy
        self._folder = folder.absolute()
        self._keep = keep
        self._published: list[Weights] = []

    def current(self) -> tuple[Weights, ...]:
        """The policy's present weights, published if they were not yet, and those before that
        are kept; the newest first.

        Raises:
            StorageError: the disk refuses. What was published before is as it was.
        """
        if not self._published or self._published[0].version != self._policy.version:
            weights = self._write()
            kept = [weights, *self._published][: self._keep]
            write_current(self._folder, kept)
            self._published = kept
            self._forget_others(kept)
        return tuple(self._published)

    def _write(self) -> Weights:
        policy, is_adapter = self._policy, self._policy.adapter is not None
        parent = self._folder / ("adapters" if is_adapter else "weights")
        final = parent / f"v{policy.version}"
        temporary = parent / f".v{policy.version}"
        try:
            parent.mkdir(parents=True, exist_ok=True)
            for leftover in (temporary, final):  # Of a process that was killed, or of another run.
                shutil.rmtree(leftover, ignore_errors=True)
            temporary.mkdir()
            save_weights(policy.module.model, policy.adapter, temporary)
            name = f"{_digest(temporary)}-v{policy.version}"
            publish(temporary, final)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(temporary, ignore_errors=True)
            text = getattr(error, "strerror", None) or str(error)
            raise StorageError(
                f"{final}: the weights cannot be published: {text} — make room, then go on with "
                "--resume"
            ) from error
        components = components_of(policy.module.model) if is_adapter else ()
        return Weights(policy.version, name, str(final), is_adapter, components)

    def _forget_others(self, kept: Sequence[Weights]) -> None:
        paths = {weights.path for weights in kept}
        for parent in ("adapters", "weights"):
            for folder in (self._folder / parent).glob("v*"):
                if str(folder) not in paths:
                    shutil.rmtree(folder, ignore_errors=True)


def _digest(folder: Path) -> str:
    digest = blake2b(digest_size=6)
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as content:
            while block := content.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def write_current(folder: Path, weights: Sequence[Weights]) -> None:
    """Says which weights are published, the newest first.

    Raises:
        StorageError: the disk refuses.
    """
    temporary, final = folder / f".{CURRENT}", folder / CURRENT
    try:
        temporary.write_text(json.dumps([asdict(w) for w in weights]) + "\n", encoding="utf-8")
        publish(temporary, final)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StorageError(f"{final}: cannot be written: {error.strerror or error}") from error


def read_current(folder: Path) -> tuple[Weights, ...]:
    """Which weights are published, the newest first; none: nothing is yet.

    Raises:
        StorageError: the file is another one.
    """
    path = folder / CURRENT
    try:
        items = json.loads(path.read_text(encoding="utf-8"))
        return tuple(Weights(**(i | {"components": tuple(i["components"])})) for i in items)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StorageError(f"{path}: got no list of published weights ({error})") from error
