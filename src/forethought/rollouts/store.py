"""The trajectory store: a folder of Parquet shards, each whole or absent.

A shard takes its name only when it is complete and on the disk. It carries its
schema version and a seal over every other byte of the file, so that a shard that
was cut short, altered, or written by another version is refused, never half
read. Other tools (pandas, `datasets`) open it as plain Parquet.
"""

import fcntl
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from forethought.durable import published
from forethought.errors import StorageError
from forethought.rollouts.rows import (
    EARNED_COLUMNS,
    OLDER,
    ORIGIN_COLUMNS,
    SCHEMA,
    SCHEMA_VERSION,
    Table,
    earned_from_table,
    from_table,
    origins_from_table,
    to_table,
)
from forethought.rollouts.shard_files import (
    ImageDecoder,
    ImageEncoder,
    check_seal,
    copies_among,
    is_copy,
    open_shard,
    write_seal,
)
from forethought.rollouts.soundness import earned_problems, problems_of
from forethought.types import Earned, Origin, Trajectory

SUFFIX = ".parquet"

_Record = TypeVar("_Record")

_ROWS_PER_GROUP = 256
"""A reader holds one row group at a time; a trajectory is never split between two."""

_VERSION_KEY = b"forethought.schema_version"


def write_shard(path: Path, trajectories: Sequence[Trajectory]) -> None:
    """Writes one shard, replacing one of the same name; whole or absent, whatever happens.

    Temporary files that a killed writer left in the folder are removed first.

    Args:
        path: ends in `.parquet`; its folder exists.
        trajectories: any, also without steps; a list of none gives an empty shard.

    Raises:
        StorageError: the folder cannot be written: disk full, read-only, missing.
        ValueError: the path or a record is not what it should be.
    """
    if path.suffix != SUFFIX:
        raise ValueError(f"a shard's name ends in {SUFFIX}: got {path.name}")
    try:
        _remove_abandoned(path.parent)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        with published(_open_claimed(temporary), path) as file:
            _write(file, trajectories)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {_reason(error)}") from error


def read_shard(path: Path) -> list[Trajectory]:
    """The trajectories of one shard, as they were written.

    Raises:
        StorageError: the file cannot be read, is cut short or altered, or has another version.
    """
    return list(stream_shard(path))


def read_shards(source: Path) -> Iterator[Trajectory]:
    """The trajectories of one shard, or of every shard of a folder in the order of file names.

    Memory holds one row group at a time. Temporary files are not shards. These are data to learn
    from, so trajectories that cannot be are refused, where `read_shard` gives what was written.

    Raises:
        StorageError: there is no such file or folder, a shard is refused (see `read_shard`), is
            there twice, or holds an impossible trajectory (see `problems_of`).
    """
    paths = _different(_shards_of(source))
    return (one for path in paths for one in _sound(path, stream_shard(path), problems_of))


def read_earned(source: Path) -> Iterator[Earned]:
    """What the trajectories of `read_shards` earned, in the same order.

    Texts and images stay on the disk: where a whole read takes minutes, this takes seconds.

    Raises:
        StorageError: as `read_shards`.
    """
    return (
        earned
        for path in _different(_shards_of(source))
        for earned in _sound(path, stream_earned(path), earned_problems)
    )


def read_origins(source: Path) -> Iterator[Origin]:
    """Where the trajectories of `read_shards` come from, in the same order; in no time.

    Raises:
        StorageError: as `read_shard`, a shard is there twice, or there is none.
    """
    return (
        origin
        for path in _different(find_shards(source))
        for origin in _stream(path, ORIGIN_COLUMNS, origins_from_table)
    )


def count_steps(path: Path) -> int:
    """Environment steps that a shard holds, of whatever version it is.

    Raises:
        StorageError: no shard, or a damaged one.
    """
    with _refusals(path):
        steps = pq.read_table(path, columns=["step"])["step"]
        return len(steps) - steps.null_count


def find_shards(source: Path) -> list[Path]:
    """The shard that is named, or those of the folder that is, in the order of their names.

    Raises:
        StorageError: there is no such file or folder, or no shard in it.
    """
    paths = _shards_of(source)
    if not paths:
        raise StorageError(
            f"{source}: got a folder without shards (*{SUFFIX}), expected trajectories"
        )
    return paths


def _different(paths: list[Path]) -> list[Path]:
    for path, other in copies_among(paths).items():
        raise StorageError(f"{path}: {is_copy(other)}")
    return paths


def _sound(
    path: Path, records: Iterator[_Record], problems: Callable[[_Record], Iterator[str]]
) -> Iterator[_Record]:
    for number, record in enumerate(records):
        for problem in problems(record):
            raise StorageError(
                f"{path}: trajectory {number}: {problem}; `forethought data validate {path}` "
                "lists all that is wrong"
            )
        yield record


def _shards_of(source: Path) -> list[Path]:
    if source.exists() and not source.is_dir():
        return [source]
    if not source.is_dir():
        raise StorageError(f"{source}: does not exist — expected a file or folder of trajectories")
    return sorted(source.glob(f"*{SUFFIX}"))


def stream_shard(path: Path) -> Iterator[Trajectory]:
    """The trajectories of one shard, one row group in memory at a time.

    The seal is checked first, so nothing of a damaged shard is ever given out.

    Raises:
        StorageError: as `read_shard`, when the first trajectory is asked for.
    """
    return _stream(path, None, lambda table: from_table(table, ImageDecoder()))


def stream_earned(path: Path) -> Iterator[Earned]:
    """What the trajectories of `stream_shard` earned."""
    return _stream(path, EARNED_COLUMNS, earned_from_table)


def _stream(
    path: Path,
    columns: Sequence[str] | None,
    decode: Callable[[Table], Iterator[tuple[int, _Record]]],
) -> Iterator[_Record]:
    """What a shard's row groups hold, of all columns or of some, decoded one group at a time."""
    with _refusals(path):
        file = open_shard(path)
    with file:
        with _refusals(path):
            check_seal(file)
            shard = pq.ParquetFile(file)
            _check_schema(shard)
            groups = range(shard.num_row_groups)
        following = 0
        for group in groups:
            with _refusals(path):
                table = shard.read_row_group(group, columns=columns)
                numbered = list(decode(table))
                for number, _ in numbered:
                    if number != following:
                        raise ValueError(f"trajectory {following} is missing, {number} is here")
                    following += 1
            yield from (record for _, record in numbered)


# Writing


def _write(file: BinaryIO, trajectories: Sequence[Trajectory]) -> None:
    images = ImageEncoder()
    # Statistics would only repeat text and images in the footer; nothing here queries by them.
    with pq.ParquetWriter(file, SCHEMA, compression="zstd", write_statistics=False) as writer:
        for group in _groups(trajectories):
            writer.write_table(to_table(group, images))
        writer.add_key_value_metadata({_VERSION_KEY: SCHEMA_VERSION})
    write_seal(file)


def _groups(trajectories: Sequence[Trajectory]) -> Iterator[list[tuple[int, Trajectory]]]:
    """Numbered trajectories in runs of about `_ROWS_PER_GROUP` steps."""
    group: list[tuple[int, Trajectory]] = []
    rows = 0
    for number, trajectory in enumerate(trajectories):
        group.append((number, trajectory))
        rows += max(1, len(trajectory.steps))
        if rows >= _ROWS_PER_GROUP:
            yield group
            group, rows = [], 0
    if group:
        yield group


def _open_claimed(temporary: Path) -> BinaryIO:
    """Opens a temporary file and claims it, so that no other writer clears it away."""
    while True:
        file = temporary.open("w+b")
        _claim(file)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # Another writer cleared it away between the two calls: once more.


def _claim(file: BinaryIO) -> bool:
    """Whether this file was free, and is now ours until it is closed or we die."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # Held by a living writer, or a file system that has no such locks.
        return False
    return True


def _remove_abandoned(folder: Path) -> None:
    """Removes the temporary files of writers that died, and of no others."""
    for temporary in folder.glob(f".*{SUFFIX}.*.tmp"):
        with suppress(OSError), temporary.open("rb") as file:
            if _claim(file):
                temporary.unlink()


# Reading


@contextmanager
def _refusals(path: Path) -> Generator[None]:
    """Turns what a file can do wrong into one line that names it."""
    try:
        yield
    except StorageError as error:
        raise StorageError(f"{path}: {error}") from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise StorageError(f"{path}: cannot be read: {_reason(error)}") from error
        raise StorageError(
            f"{path}: got a damaged or foreign file ({_reason(error)}), expected a whole shard"
        ) from error


def _check_schema(shard: pq.ParquetFile) -> None:
    notes: dict[bytes, bytes] = shard.metadata.metadata or {}
    version = notes.get(_VERSION_KEY, b"none").decode()
    older = OLDER.get(version)
    if older is not None and shard.schema_arrow.equals(older):
        return
    if version != SCHEMA_VERSION:
        raise StorageError(f"got schema version {version}, expected {SCHEMA_VERSION}")
    if not shard.schema_arrow.equals(SCHEMA):
        raise StorageError(f"got other columns than schema version {SCHEMA_VERSION} has")


def _reason(error: Exception) -> str:
    """The first line of what went wrong, to stand inside a sentence."""
    text = (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
    return text.splitlines()[0]
