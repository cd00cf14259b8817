"""Weights on a shared disk: what a trainer writes and engines read, whole or absent.

current.json       in the run folder: what is published at present, which workers read
adapters/v{N}/     LoRA adapters after N updates, beside it or in a shared folder
weights/v{N}/      or all weights
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
OWNER = "run.txt"
"""In a folder of weights that runs share: the folder of the run that made it."""


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

    def __init__(
        self, policy: HuggingFacePolicy, folder: Path, *, keep: int, shared: str | None = None
    ) -> None:
        """
        Args:
            folder: the run's own, in its run folder; says what is published.
            keep: how many versions stay on the disk, the newest included.
            shared: where the weights lie, in a folder that no other run takes; by default in
                `folder`.
        """
        self._policy = policy
        self._folder = folder.absolute()
        self._name = self._folder.parent.name
        self._shared = None if shared is None else Path(shared).absolute()
        self._home: Path | None = None
        """Where the weights lie, once that is known."""
        self._keep = keep
        self._published: list[Weights] = []

    def current(self) -> tuple[Weights, ...]:
        """The policy's present weights, published if they were not yet, and those before that
        are kept; the newest first.

        Raises:
            StorageError: the disk refuses. What was published before is as it was.
        """
        if not self._published or self._published[0].version != self._policy.version:
            home = self._home = self._home or self._take_home()
            weights = self._write(home)
            kept = [weights, *self._published][: self._keep]
            write_current(self._folder, kept)
            self._published = kept
            _forget_others(home, kept)
        return tuple(self._published)

    def _take_home(self) -> Path:
        """The folder that the run had before it was stopped, or a new one.

        Raises:
            StorageError: the disk refuses.
        """
        if self._shared is None:
            return self._folder
        homes = [Path(weights.path).parents[1] for weights in read_current(self._folder)]
        try:
            if homes and homes[0].parent == self._shared and self._is_mine(homes[0]):
                return homes[0]
            home = _make_new(self._shared, self._name)
            (home / OWNER).write_text(f"{self._folder}\n", encoding="utf-8")
            return home
        except OSError as error:
            raise _refusal(self._shared, error) from error

    def _is_mine(self, home: Path) -> bool:
        """Whether this run made it, and not the one whose folder this run's is a copy of."""
        owner = home / OWNER
        return owner.is_file() and owner.read_text(encoding="utf-8") == f"{self._folder}\n"

    def _write(self, home: Path) -> Weights:
        policy, is_adapter = self._policy, self._policy.adapter is not None
        parent = home / ("adapters" if is_adapter else "weights")
        final = parent / f"v{policy.version}"
        temporary = parent / f".v{policy.version}"
        try:
            parent.mkdir(parents=True, exist_ok=True)
            for leftover in (temporary, final):  # Of a process that was killed.
                shutil.rmtree(leftover, ignore_errors=True)
            temporary.mkdir()
            save_weights(policy.module.model, policy.adapter, temporary)
            name = f"{_digest(temporary)}-v{policy.version}"
            publish(temporary, final)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(temporary, ignore_errors=True)
            raise _refusal(final, error) from error
        components = components_of(policy.module.model) if is_adapter else ()
        return Weights(policy.version, name, str(final), is_adapter, components)


def _make_new(shared: Path, name: str) -> Path:
    """Makes a folder that was not there, called as the run is, or so and a number."""
    shared.mkdir(parents=True, exist_ok=True)
    folder, number = shared / name, 1
    while True:
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            number += 1
            folder = shared / f"{name}-{number}"


def _refusal(path: Path, error: Exception) -> StorageError:
    text = getattr(error, "strerror", None) or str(error)
    return StorageError(
        f"{path}: the weights cannot be published: {text} — make room, then go on with --resume"
    )


def _forget_others(home: Path, kept: Sequence[Weights]) -> None:
    paths = {weights.path for weights in kept}
    for parent in ("adapters", "weights"):
        for folder in (home / parent).glob("v*"):
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
        folder.mkdir(parents=True, exist_ok=True)
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
