"""Which stored answers were compared: JSON lines beside the shards that hold them.

    {"chosen": {"trajectory": 3, "step": 0, "score": 45.0}, "rejected": {…}}

One file per round and process, of the same name as its shard.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from forethought.durable import write_text
from forethought.errors import StorageError

SUFFIX = ".jsonl"


class CompletionPlace(NamedTuple):
    """Where one side of a pair is stored, and how the episode went from there."""

    trajectory: int
    """From 0 within the shard."""
    step: int
    """From 0 within the trajectory."""
    score: float


class PairPlace(NamedTuple):
    """A pair, by the places of its answers."""

    chosen: CompletionPlace
    rejected: CompletionPlace


def write_pairs(path: Path, pairs: Sequence[PairPlace]) -> None:
    """Writes one file, whole or not at all, replacing one of the same name.

    Raises:
        StorageError: the disk is full or read-only.
    """
    path.parent.mkdir(exist_ok=True)
    lines = [
        json.dumps({"chosen": pair.chosen._asdict(), "rejected": pair.rejected._asdict()})
        for pair in pairs
    ]
    write_text(path, "".join(f"{line}\n" for line in lines))


def read_pairs(path: Path) -> list[PairPlace]:
    """The pairs of one file.

    Raises:
        StorageError: it cannot be read, or holds something else.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [_pair(json.loads(line)) for line in lines]
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise StorageError(f"{path}: got something else than pairs, one a line") from error


def _pair(fields: dict[str, Any]) -> PairPlace:
    return PairPlace(CompletionPlace(**fields["chosen"]), CompletionPlace(**fields["rejected"]))
