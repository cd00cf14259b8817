"""What is known of a cell: its run folder, and a small file beside it.

<output>/<cell>/        the run
<output>/<cell>.json    how far the study is with it
<output>/<cell>.<variant>_<digest>.json   its evaluation in a variant

The run folder tells what was computed; it does not tell that the training has come to its
end, what went wrong, and how long it took while nothing of that was logged.
"""

import hashlib
import json
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from forethought.errors import ForethoughtError, StorageError
from forethought.evaluation.evaluate import EvaluationSettings
from forethought.evaluation.results import Evaluation
from forethought.runs.checkpoints import list_checkpoints
from forethought.runs.metrics import read_metrics
from forethought.runs.run_folder import RunFolder, write_text
from forethought.studies.cells import Cell, Plan
from forethought.studies.config import JudgingConfig


class State(StrEnum):
    """How far a cell is."""

    MISSING = "missing"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    TRAINED = "trained"
    """And not yet judged on as many episodes as the study asks for."""
    FINISHED = "finished"


@dataclass(frozen=True)
class Record:
    """The small file."""

    key: str
    """Of the cell."""
    code: str
    """Version of the sources that it was trained with."""
    is_trained: bool = False
    seconds: float = 0.0
    """Spent training in sessions that have ended."""
    began: float | None = None
    """When the present session began, seconds since 1970; still set where it was killed."""
    error: str | None = None
    """What ended the last session, in one line."""

    def begun(self, folder: RunFolder) -> "Record":
        """A session begins. One that was killed counts up to the last line that it logged."""
        return replace(self.stopped(folder), began=time.time())

    def stopped(self, folder: RunFolder, error: str | None = None) -> "Record":
        """The session was killed before it could say so."""
        if self.began is None:
            return replace(self, error=error)
        with suppress(OSError):
            spent = max(0.0, folder.timings_path.stat().st_mtime - self.began)
            return replace(self, began=None, seconds=self.seconds + spent, error=error)
        return replace(self, began=None, error=error)

    def ended(self, *, is_trained: bool, error: str | None = None) -> "Record":
        """The session ends here and now."""
        spent = 0.0 if self.began is None else max(0.0, time.time() - self.began)
        return replace(
            self, began=None, seconds=self.seconds + spent, is_trained=is_trained, error=error
        )


@dataclass(frozen=True)
class Outcome:
    """What has become of a cell so far."""

    cell: Cell
    state: State
    is_trained: bool
    """Whether there is a model for the next stage."""
    evaluation: Evaluation | None
    """Of the last checkpoint, on as many episodes as the study asks for."""
    seconds: float | None
    """Of training; None where nothing was trained."""
    error: str | None
    also: tuple[Evaluation | None, ...] = ()
    """In the variants of the world that the study names, in its order."""


def read_record(cell: Cell, code: str) -> Record:
    """What is stored of a cell; a fresh record where nothing is.

    Raises:
        StorageError: the file is damaged.
    """
    path = record_path(cell)
    try:
        return Record(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Record(cell.key, code)
    except (OSError, ValueError, TypeError) as error:
        raise StorageError(f"{path}: is damaged — delete it, and {cell.folder.path}") from error


def write_record(cell: Cell, record: Record) -> None:
    """Stores it, whole or not at all."""
    path = record_path(cell)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{path.parent}: cannot be made: {error.strerror}") from error
    write_text(path, json.dumps(asdict(record), indent=1) + "\n")


def record_path(cell: Cell) -> Path:
    """The small file of a cell."""
    folder = cell.folder.path
    return folder.with_name(f"{folder.name}.json")


def also_path(cell: Cell, judging: JudgingConfig) -> Path:
    """The evaluation of a cell in a variant; whatever else differs, another file."""
    folder = cell.folder.path
    content = (judging.options, judging.temperature, judging.constrain_actions)
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]
    return folder.with_name(f"{folder.name}.{judging.name}_{digest}.json")


def read_outcome(cell: Cell, plan: Plan) -> Outcome:
    """Where a cell stands. One with a damaged file has failed, and says so."""
    try:
        return _read_outcome(cell, plan)
    except ForethoughtError as error:
        return _without_model(cell, plan, State.FAILED, str(error))


def _read_outcome(cell: Cell, plan: Plan) -> Outcome:
    record, folder = read_record(cell, plan.code), cell.folder
    if not folder.is_run:
        state = State.MISSING if record.error is None else State.FAILED
        return _without_model(cell, plan, state, record.error)
    seconds = training_seconds(folder, record)
    episodes = plan.episodes
    wanted = [(folder.evaluation_path, EvaluationSettings(episodes))]
    wanted += [(also_path(cell, one), one.settings(episodes)) for one in plan.also_judged]
    evaluation, *also = [
        _evaluation(path, folder, settings) if record.is_trained else None
        for path, settings in wanted
    ]
    if record.error is not None:
        state = State.FAILED
    elif not record.is_trained:
        state = State.INTERRUPTED
    else:
        is_judged = evaluation is not None and None not in also
        state = State.FINISHED if is_judged else State.TRAINED
    return Outcome(
        cell, state, record.is_trained, evaluation, seconds, record.error, also=tuple(also)
    )


def _without_model(cell: Cell, plan: Plan, state: State, error: str | None) -> Outcome:
    also = (None,) * len(plan.also_judged)
    return Outcome(cell, state, False, None, None, error, also=also)


def training_seconds(folder: RunFolder, record: Record) -> float:
    """How long the training took.

    What the run logged, where it logs how long its rounds took: after an interruption, rounds
    that had to be done again count once. Otherwise wall-clock time of all sessions.
    """
    if folder.timings_path.is_file():
        timings = read_metrics(folder.timings_path)
        names = [n for n in timings.names if n.endswith("_s") and not n.endswith("_per_s")]
        if names:
            return float(sum(timings.column(name).values.sum() for name in names))
    return record.stopped(folder).seconds


def _evaluation(path: Path, folder: RunFolder, wanted: EvaluationSettings) -> Evaluation | None:
    """A stored evaluation, if it is the one that the study wants."""
    if not path.is_file():
        return None
    try:
        stored = Evaluation.from_json(path.read_text(encoding="utf-8"))
    except StorageError as error:
        raise StorageError(f"{path}: {error}") from None
    checkpoints = list_checkpoints(folder.checkpoints_dir)
    start, stop = stored.seed_range
    is_newest = bool(checkpoints) and stored.checkpoint == checkpoints[-1].name
    is_so_long = stop - start == wanted.episodes
    answers = (stored.temperature, stored.holds_actions)
    is_so_played = answers == (wanted.temperature, wanted.constrain_actions)
    return stored if is_newest and is_so_long and is_so_played else None
