"""The log of a run's numbers: one JSON object a line, and the same numbers in its trackers.

`metrics.jsonl` holds what the run computed, so it is byte for byte the same for a
run that was killed and resumed and for one that never stopped. What a clock
measured goes to `timings.jsonl`, where no two runs agree.

A number that is not finite is written as `null` (JSON has no NaN) and read back
as NaN; every other number is read back equal to the last bit.
"""

import hashlib
import json
import math
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forethought.durable import flush
from forethought.errors import RunFolderError, StorageError, UnknownNameError
from forethought.runs.log_seals import LogSeal, require_log, write_log_seals
from forethought.runs.run_folder import RunFolder
from forethought.runs.trackers import Trackers
from forethought.types import Metric

STEP = "step"
"""The first key of every line."""
_TAKEN = "environment_steps"
"""Logged by algorithms whose rounds take as many as their episodes do."""


@dataclass(frozen=True)
class MetricsPosition:
    """A point between two lines of the log, to be kept in a checkpoint."""

    metrics_bytes: int = 0
    timings_bytes: int = 0
    step: int = -1
    """The last step that was logged before; -1 where none was."""


class MetricsLog:
    """Appends to the log of a run. Its caller holds the run's lock.

    Every call reaches the operating system before it returns, so a killed run
    loses at most a part of one line, which readers pass over.
    """

    def __init__(self, folder: RunFolder, position: MetricsPosition) -> None:
        """Use `create` or `resume`."""
        self._metrics = _LineFile(folder.metrics_path, position.metrics_bytes)
        self._timings = _LineFile(folder.timings_path, position.timings_bytes)
        self._step = position.step
        self._folder = folder
        if folder.log_seals_path.exists():  # For it covers what is now cut off.
            self._seal()
        sent = self._metrics.cut() + self._timings.cut()
        with _refusals(folder.path):
            self._trackers = Trackers(folder, first_step=position.step + 1, sent=sent)

    @classmethod
    def create(cls, folder: RunFolder) -> "MetricsLog":
        """Starts the log of a new run.

        Raises:
            RunFolderError: the folder has one already.
            StorageError: it cannot be written.
        """
        if folder.metrics_path.exists():
            raise RunFolderError(f"{folder.metrics_path}: is there already, expected a new run")
        return cls(folder, MetricsPosition())

    @classmethod
    def resume(cls, folder: RunFolder, position: MetricsPosition) -> "MetricsLog":
        """Continues a log from a position: what was logged after it is dropped.

        `MetricsPosition()` is the beginning: for a run that was killed before its
        first checkpoint.

        Raises:
            StorageError: the files are shorter than they were, or cannot be written.
        """
        return cls(folder, position)

    def log(self, step: int, metrics: Sequence[Metric]) -> None:
        """Appends one line of what the run computed. A step may have several lines.

        Args:
            step: not below the one before.
            metrics: numbers by name, in the order in which they are written.

        Raises:
            StorageError: the disk refuses.
            ValueError: the step went back, or a name is there twice.
        """
        self._append(self._metrics, step, metrics)

    def log_timing(self, step: int, timings: Sequence[Metric]) -> None:
        """Appends one line of what a clock measured, named with its unit: `update_s`.

        Raises:
            StorageError, ValueError: as `log`.
        """
        self._append(self._timings, step, timings)

    def position(self) -> MetricsPosition:
        """Where the log stands; what it holds so far is on the disk when this returns.

        Raises:
            StorageError: the disk refuses.
        """
        position = MetricsPosition(self._metrics.sync(), self._timings.sync(), self._step)
        self._seal()
        return position

    def close(self) -> None:
        """Seals and closes the files; a second call does nothing.

        Raises:
            StorageError: the disk refuses.
        """
        if self._metrics.is_open and self._step >= 0:
            self.position()
        self._metrics.close()
        self._timings.close()
        with _refusals(self._folder.path):
            self._trackers.close()

    def __enter__(self) -> "MetricsLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _seal(self) -> None:
        logs = {self._folder.metrics_path: self._metrics, self._folder.timings_path: self._timings}
        seals = {path.name: log.seal() for path, log in logs.items()}
        write_log_seals(self._folder.path, seals)

    def _append(self, file: "_LineFile", step: int, metrics: Sequence[Metric]) -> None:
        if step < self._step:
            raise ValueError(f"steps never go back: got {step} after {self._step}")
        file.append(_line(step, metrics))
        self._step = step
        with _refusals(self._folder.path):
            self._trackers.log(step, metrics)


class Series(NamedTuple):
    """One metric over the run."""

    steps: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MetricsTable:
    """A log as a table: one row per line, one column per metric, NaN where a line has none."""

    steps: NDArray[np.int64]
    """int64 [lines]."""
    names: tuple[str, ...]
    """In the order in which they first appear."""
    values: NDArray[np.float64]
    """float64 [lines, names]."""

    def column(self, name: str) -> Series:
        """One metric, at the steps where it has a number.

        Raises:
            UnknownNameError: no line has this metric.
        """
        if name not in self.names:
            raise UnknownNameError(
                f"got metric {name!r}, expected one of: {', '.join(self.names) or 'none'}"
            )
        values_T = self.values[:, self.names.index(name)]
        is_number_T = ~np.isnan(values_T)
        return Series(self.steps[is_number_T], values_T[is_number_T])

    def environment_steps(self, steps: NDArray[np.int64], *, per_step: int) -> NDArray[np.float64]:
        """How many environment steps a run had taken.

        Args:
            steps: of lines of this log.
            per_step: how many each takes, where the log does not say how many it took.
        """
        if _TAKEN not in self.names:
            return (steps * per_step).astype(np.float64)
        taken_T = np.cumsum(np.nan_to_num(self.values[:, self.names.index(_TAKEN)]))
        return taken_T[np.searchsorted(self.steps, steps)]


def read_metrics(path: Path) -> MetricsTable:
    """Reads a log, also one that is being written: a last line without its end is passed over.

    Args:
        path: `metrics.jsonl` or `timings.jsonl` of a run.

    Raises:
        StorageError: the file cannot be read, a whole line is not one of a log, or what was
            sealed of it was altered.
    """
    with _refusals(path, "read"):
        content = path.read_bytes()
    require_log(path, content)
    lines = content.split(b"\n")[:-1]
    rows = [_parsed(path, number, line) for number, line in enumerate(lines, start=1)]
    names = tuple(dict.fromkeys(measure.name for _, measures in rows for measure in measures))
    index_of = {name: index for index, name in enumerate(names)}
    values_TM = np.full((len(rows), len(names)), np.nan)
    for t, (_, measures) in enumerate(rows):
        for measure in measures:
            values_TM[t, index_of[measure.name]] = measure.value
    return MetricsTable(np.array([step for step, _ in rows], dtype=np.int64), names, values_TM)


class _LineFile:
    """A file that only grows, by whole lines, from a given size on; what it holds beyond that is
    there until `cut`."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        with _refusals(path):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            flush(path.parent)  # A new file is not to lose its name in a power cut.
            content = path.read_bytes()
        try:
            require_log(path, content)
            if len(content) < size or not (not size or content[size - 1 : size] == b"\n"):
                raise StorageError(
                    f"{path}: got {len(content)} bytes, expected a line to end at byte {size} — "
                    "it was altered since the checkpoint; put it back, or start another run"
                )
        except StorageError:
            os.close(self._descriptor)
            raise
        self._size = size
        self._digest = hashlib.sha256(content[:size])
        self.is_open = True

    def cut(self) -> int:
        """Drops what comes after the size from which the file grows; how many lines that were."""
        with _refusals(self._path):
            dropped = os.pread(self._descriptor, self._path.stat().st_size, self._size)
            os.ftruncate(self._descriptor, self._size)
        return dropped.count(b"\n")

    def append(self, line: bytes) -> None:
        """Writes one line; where the disk refuses it, the file stays as it was."""
        with _refusals(self._path):
            written = 0
            try:
                while written < len(line):
                    at = self._size + written
                    written += os.pwrite(self._descriptor, line[written:], at)
            except OSError:
                os.ftruncate(self._descriptor, self._size)
                raise
        self._size += len(line)
        self._digest.update(line)

    def sync(self) -> int:
        """The file's size in bytes, all of them on the disk."""
        with _refusals(self._path):
            os.fsync(self._descriptor)
        return self._size

    def seal(self) -> LogSeal:
        """Seal of all that it holds."""
        return LogSeal(self._size, self._digest.hexdigest())

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            with _refusals(self._path):
                os.close(self._descriptor)


def _line(step: int, measures: Sequence[Metric]) -> bytes:
    row: dict[str, int | float | None] = {STEP: step}
    for name, value in measures:
        if name in row:
            raise ValueError(f"one number per name and line: got {name!r} twice")
        row[name] = float(value) if math.isfinite(value) else None
    return json.dumps(row, allow_nan=False).encode() + b"\n"


def _parsed(path: Path, number: int, line: bytes) -> tuple[int, list[Metric]]:
    try:
        row = json.loads(line)
        step = int(row.pop(STEP))
        return step, [Metric(k, math.nan if v is None else float(v)) for k, v in row.items()]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StorageError(
            f'{path}: got line {number} = {line[:40]!r}, expected {{"step": ..., numbers by name}}'
        ) from None


@contextmanager
def _refusals(path: Path, verb: str = "written") -> Generator[None]:
    """Turns what a file system can refuse into one line that names the file."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: cannot be {verb}: {error.strerror or error}") from error
