"""`logs.json`: how many bytes of each log are sealed, and a digest of them.

A log grows while a run goes on. It is sealed whenever it is on the disk for certain: with each
checkpoint, and at the end. What was logged after that may be lost, and is not sealed yet.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from forethought.durable import require_seal, sealed, write_text
from forethought.errors import StorageError
from forethought.runs.run_folder import LOG_SEALS


class LogSeal(NamedTuple):
    """Seal of the beginning of a file."""

    size: int
    """In bytes."""
    sha256: str


def write_log_seals(folder: Path, seals: Mapping[str, LogSeal]) -> None:
    """Replaces the seals of a run's logs, by the names of the files.

    Raises:
        StorageError: the disk refuses.
    """
    content = {name: [seal.size, seal.sha256] for name, seal in seals.items()}
    write_text(folder / LOG_SEALS, sealed(json.dumps(content)))


def require_log(log: Path, content: bytes) -> None:
    """Refuses a log whose sealed part is not what was written. One without a seal is right.

    Args:
        content: of the log, all that is there.

    Raises:
        StorageError: it was altered or cut short, or the file of the seals is damaged.
    """
    path = log.with_name(LOG_SEALS)
    try:
        text = path.read_text(encoding="utf-8")
        require_seal(text)
        found: dict[str, Any] = json.loads(text)
        if log.name not in found:
            return
        seal = LogSeal(*found[log.name])
    except FileNotFoundError:
        return
    except StorageError as error:
        raise StorageError(f"{path}: {error}") from None
    except (OSError, ValueError, TypeError) as error:
        raise StorageError(f"{path}: is damaged ({type(error).__name__}: {error})") from error
    if hashlib.sha256(content[: seal.size]).hexdigest() != seal.sha256:
        raise StorageError(
            f"{log}: its first {seal.size} bytes are not those that were sealed: it was altered "
            "or cut short — put it back, or start another run"
        )
