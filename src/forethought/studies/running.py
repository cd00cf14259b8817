"""What became of each cell, and the training of those that are not finished."""

import hashlib
import json
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Literal, NamedTuple

from forethought.configs.contract import AnyConfig
from forethought.durable import write_text
from forethought.errors import ForethoughtError, StorageError, visible
from forethought.evaluation.evaluate import EvaluationSettings
from forethought.evaluation.results import Evaluation
from forethought.runs.checkpoints import list_checkpoints
from forethought.runs.metrics import read_metrics
from forethought.runs.run_folder import RunFolder
from forethought.studies.config import JudgingConfig
from forethought.studies.plan import Cell, Plan


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
    is_so_played = answers == (wanted.sampling.temperature, wanted.sampling.constrain_actions)
    return stored if is_newest and is_so_long and is_so_played else None


Train = Callable[[AnyConfig, Literal["refuse", "resume"]], Path]
"""Trains from the beginning, or goes on; as `train_sft` and `train_ppo` do."""
Judge = Callable[[AnyConfig, EvaluationSettings], Evaluation]
"""Plays held-out episodes of the config's world with the newest checkpoint of its run, and stores
what came of it there if it is the run's own world and the answers are greedy and free."""


class Work(NamedTuple):
    """How a cell is done."""

    train: Train
    judge: Judge
    say: Callable[[str], None]
    """Tells a person what comes next, in one line."""
    after_cell: Callable[[], None]
    """Called after every cell, finished or failed."""


def run_cells(plan: Plan, work: Work, *, only: Sequence[str] = ()) -> list[Outcome]:
    """Does what is not done yet. A cell that fails stops those that start from it, no others.

    Args:
        only: names of the rows to run; none means all of them.

    Returns:
        Where each of these cells stands now.
    """
    cells = plan.cells(only)
    without_model: set[Cell] = set()
    for number, cell in enumerate(cells, start=1):
        title = f"{number}/{len(cells)}  {cell.name} ({', '.join(plan.rows_of(cell))})"
        if cell.start in without_model:
            without_model.add(cell)
            work.say(f"{title}: left out, for {cell.start.name if cell.start else ''} failed")
            continue
        error = _run(cell, plan, work, title)
        if error is not None:
            work.say(f"{title}: failed: {error}")
            if not read_outcome(cell, plan).is_trained:
                without_model.add(cell)
        work.after_cell()
    return [read_outcome(cell, plan) for cell in cells]


def _run(cell: Cell, plan: Plan, work: Work, title: str) -> str | None:
    """One cell; what went wrong, in one line, or None."""
    try:
        outcome = read_outcome(cell, plan)
        if outcome.state is State.FINISHED:
            work.say(f"{title}: finished before")
            return None
        if not outcome.is_trained:
            work.say(f"{title}: {'train on' if cell.folder.is_run else 'train'}")
            _train(cell, plan, work)
        _judge(cell, plan, work, title)
        record = read_record(cell, plan.code)
        write_record(cell, record.ended(is_trained=True))
    except Exception as error:
        if _is_interruption(error):
            raise
        line = _in_one_line(error)
        _remember(cell, plan, line)
        return line
    return None


def _train(cell: Cell, plan: Plan, work: Work) -> None:
    """Trains to the end, or as far as it goes; the time is counted in any case."""
    folder = cell.folder
    record = read_record(cell, plan.code) if folder.is_run else Record(cell.key, plan.code)
    record = record.begun(folder)
    write_record(cell, record)
    is_trained = False
    try:
        work.train(cell.config, "resume" if folder.is_run else "refuse")
        is_trained = True
    finally:
        write_record(cell, record.ended(is_trained=is_trained))


def _judge(cell: Cell, plan: Plan, work: Work, title: str) -> None:
    """In its own world and in the study's variants, where that is not done yet."""
    outcome = read_outcome(cell, plan)
    if outcome.evaluation is None:
        work.say(f"{title}: judge on {plan.episodes} held-out episodes")
        work.judge(cell.config, EvaluationSettings(plan.episodes))
    for judging, found in zip(plan.also_judged, outcome.also, strict=True):
        if found is None:
            work.say(f"{title}: judge on {plan.episodes} held-out episodes, {judging.name}")
            world = cell.config.environment
            variant = replace(world, options=judging.applied(world.options))
            config = replace(cell.config, environment=variant)
            evaluation = work.judge(config, judging.settings(plan.episodes))
            write_text(also_path(cell, judging), evaluation.to_json())


def _remember(cell: Cell, plan: Plan, line: str) -> None:
    """Stores why a cell failed, if the disk lets us: it may be what failed."""
    try:
        record = read_record(cell, plan.code)
        write_record(cell, record.stopped(cell.folder, error=line))
    except ForethoughtError as error:
        print(f"{error}", file=sys.stderr)


def _in_one_line(error: Exception) -> str:
    """For the table. A bug keeps its traceback, on stderr."""
    line = visible(" ".join(str(error).split()))
    if isinstance(error, ForethoughtError):
        return line
    print(visible("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    return f"{type(error).__name__}: {line}"


def _is_interruption(error: BaseException | None) -> bool:
    """Whether a Ctrl-C came out of a library as another error."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False
