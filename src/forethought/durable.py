"""Files and folders that are whole or absent, whatever kills the process or the machine; seals; and
where derived files are that can be made again at any time.

What is written goes by a temporary name until it is complete and on the disk. A seal is a SHA-256
of a JSON object within it: it tells a slip or a failing disk from a measured number.
"""

import hashlib
import json
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from forethought.errors import StorageError


def publish(temporary: Path, final: Path) -> None:
    """Gives a complete file or folder its name, in one step that survives a power cut.

    Args:
        final: in the same folder as the temporary one. A file of this name is replaced, a
            folder must not be there.

    Raises:
        OSError: the disk refuses. The temporary one may be there still.
    """
    for path in (*temporary.rglob("*"), temporary):
        flush(path)
    temporary.replace(final)
    flush(final.parent)


@contextmanager
def published(file: BinaryIO, final: Path) -> Generator[BinaryIO]:
    """An open temporary file that gets the name `final` when the block ends well, and
    vanishes when it does not; in both cases it is closed.

    Raises:
        OSError: as `publish`.
    """
    temporary = Path(file.name)
    try:
        yield file
        file.flush()
        publish(temporary, final)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    finally:
        with suppress(OSError):  # What was not written by now has been reported above.
            file.close()


def flush(path: Path) -> None:
    """Returns when a file, or a folder's list of names, is on the disk.

    Raises:
        OSError: the disk refuses.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Writes a small file, whole or not at all: a reader never meets half of it.

    Raises:
        StorageError: the disk is full or read-only, or its folder is missing.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """As `write_text`.

    Raises:
        StorageError: the disk is full or read-only, or its folder is missing.
    """
    try:
        with published(temporary_name(path).open("wb"), path) as file:
            file.write(content)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror}") from error


def temporary_name(path: Path) -> Path:
    """What a file is called until it is complete."""
    return path.with_name(f".{path.name}.tmp")


SEAL_KEY = "sha256"
"""The last key of a sealed object."""


def sealed(text: str) -> str:
    """The same JSON object with its seal, indented.

    Args:
        text: an object without a key of this name; numbers are finite.
    """
    content: dict[str, Any] = json.loads(text)
    return json.dumps({**content, SEAL_KEY: _digest(content)}, indent=2, allow_nan=False) + "\n"


def require_seal(text: str, *, may_lack: bool = False) -> None:
    """Refuses an object that is not what was sealed, white space apart.

    Args:
        may_lack: files of this kind were once written without.

    Raises:
        StorageError: it lacks its seal, or another content was sealed.
        ValueError: this is no JSON.
    """
    content: Any = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("it is no JSON object")
    rest: dict[str, Any] = content
    seal = rest.pop(SEAL_KEY, None)
    if seal is None and may_lack:
        return
    if seal != _digest(rest):
        what = "has no seal" if seal is None else "does not match its seal"
        raise StorageError(
            f"{what} ({SEAL_KEY}): it was altered — put it back, or have it written again"
        )


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


CACHE_VARIABLE = "FORETHOUGHT_CACHE"
"""Environment variable that names another folder than ~/.cache/forethought."""


def cache_folder() -> Path:
    """`FORETHOUGHT_CACHE`, or a folder of ours in the user's cache (`XDG_CACHE_HOME`)."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "forethought"
