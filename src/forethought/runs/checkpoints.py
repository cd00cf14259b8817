"""Checkpoints as folders: whole or absent, and checked before they are used.

checkpoints/step_N/    manifest.json (a SHA-256 of every other file), and whatever the
                       writer put there

A folder is written under a temporary name, flushed to the disk and renamed, so that a
kill at any moment leaves either the old state or the new one.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError

from forethought.durable import publish
from forethought.errors import CheckpointError, StorageError
from forethought.runs.run_folder import RunFolder

FORMAT = 1
MANIFEST = "manifest.json"
KEPT = 2
_PREFIX = "step_"
_STEP = re.compile(rf"{_PREFIX}[0-9]+")
_PARTIAL = ".partial"


def write_checkpoint(folder: Path, step: int, write: Callable[[Path], None]) -> Path:
    """Writes `folder/step_N` and deletes all but the newest ones.

    Args:
        write: puts its files into the folder that it is given.

    Raises:
        StorageError: the disk is full or cannot be written. Older checkpoints stay.
    """
    final = folder / f"{_PREFIX}{step}"
    partial = folder / f"{_PREFIX}{step}{_PARTIAL}"
    try:
        tidy(folder)
        partial.mkdir(parents=True)
        write(partial)
        _seal(partial)
        if final.exists():
            shutil.rmtree(final)
        publish(partial, final)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        # safetensors tells of a full disk by an error of its own, which has no strerror.
        reason = getattr(error, "strerror", None) or str(error)
        raise StorageError(f"checkpoint {final} could not be written: {reason}") from error
    tidy(folder)
    return final


def tidy(folder: Path) -> None:
    """Deletes what a killed writer left half-written or half-deleted, and all but the newest
    checkpoints.

    Raises:
        StorageError: the disk refuses.
    """
    for path in [*folder.glob(f"{_PREFIX}*{_PARTIAL}"), *list_checkpoints(folder)[:-KEPT]]:
        try:
            shutil.rmtree(path)
        except OSError as error:
            raise StorageError(f"{path}: cannot be deleted: {error.strerror}") from error


def list_checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(filter(is_checkpoint, folder.glob(f"{_PREFIX}*")), key=checkpoint_step)


def checkpoint_step(checkpoint: Path) -> int:
    """The N of `step_N`."""
    return int(checkpoint.name[len(_PREFIX) :])


def newest_checkpoint(folder: Path) -> Path:
    """The newest checkpoint, verified.

    Raises:
        CheckpointError: there is none; or a file of it is missing, cut short or altered:
            the message names the file and the newest good checkpoint.
    """
    checkpoints = list_checkpoints(folder)
    if not checkpoints:
        raise CheckpointError(f"{folder}: holds no checkpoint")
    require_good(checkpoints[-1])
    return checkpoints[-1]


def is_checkpoint(path: Path) -> bool:
    """Whether a folder has the name of a checkpoint, be it sound or not."""
    return path.is_dir() and _STEP.fullmatch(path.name) is not None


def require_good(checkpoint: Path) -> None:
    """Refuses a checkpoint that is not, byte for byte, what was written.

    Raises:
        CheckpointError: naming the file, and the newest good checkpoint of the same run.
    """
    damage = find_damage(checkpoint)
    if damage is None:
        return
    every = list_checkpoints(checkpoint.parent)
    others = [other for other in every if other.name != checkpoint.name]
    good = next((other for other in reversed(others) if find_damage(other) is None), None)
    if good is None:
        advice = "no other checkpoint is good: start again"
    else:
        advice = f"the newest good one is {good.name}"
        if every[-1].name == checkpoint.name:
            advice += f": delete {checkpoint.name} to go on from it"
    raise CheckpointError(f"{checkpoint}: {damage} — {advice}")


def find_damage(checkpoint: Path) -> str | None:
    """What is wrong with a checkpoint, in words; None if every file is as it was written."""
    manifest = checkpoint / MANIFEST
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
        found, digests = content["format"], content["sha256"]
        recorded = {str(name): str(digest) for name, digest in digests.items()}
    except FileNotFoundError:
        return f"{MANIFEST} is missing"
    except OSError as error:
        return f"{MANIFEST} cannot be read: {error.strerror}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{MANIFEST} is damaged"
    if found != FORMAT:
        return f"is of format {found}, expected {FORMAT}"
    for name, digest in recorded.items():
        path = checkpoint / name
        if not path.is_file():
            return f"{name} is missing"
        try:
            if _digest(path) != digest:
                return f"{name} was altered or cut short"
        except OSError as error:
            return f"{name} cannot be read: {error.strerror}"
    return None


def _seal(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    digests = {path.relative_to(folder).as_posix(): _digest(path) for path in files}
    manifest = folder / MANIFEST
    manifest.write_text(json.dumps({"format": FORMAT, "sha256": digests}, indent=1) + "\n")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


MODEL_DIR = "model"
"""Inside a checkpoint: what `save_pretrained` wrote."""


def model_source(name: str) -> str:
    """Resolves a run folder or a checkpoint to the model folder inside.

    Anything else (a folder of `save_pretrained`, a hub id) is returned as it is.

    Raises:
        CheckpointError: as `find_checkpoint`.
    """
    checkpoint = find_checkpoint(Path(name))
    return name if checkpoint is None else str(checkpoint / MODEL_DIR)


def find_checkpoint(path: Path) -> Path | None:
    """The checkpoint that is named, or the newest one of the run that is; None where the
    path is neither. Its files are verified.

    Raises:
        CheckpointError: it is damaged, or the run has none.
    """
    folder = RunFolder(path)
    if folder.is_run:
        return newest_checkpoint(folder.checkpoints_dir)
    # A checkpoint may have been copied; and other trainers name folders so, too.
    if (path / MANIFEST).is_file() or (is_checkpoint(path) and (path / MODEL_DIR).is_dir()):
        require_good(path)
        return path
    return None
