"""State of each run of a study, and the training of those that are not finished."""

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
from forethought.studies.config import ExtraEvaluationConfig
from forethought.studies.plan import Plan, StudyRun


class State(StrEnum):
    """Progress of a run."""

    MISSING = "missing"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    TRAINED = "trained"
    """Not yet evaluated on as many episodes as the study asks for."""
    FINISHED = "finished"


@dataclass(frozen=True)
class Record:
    """Content of the small file beside a run folder."""

    key: str
    """Key of the run."""
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
        """The record of a session that was killed before it could write one."""
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
    """State and results of a run so far."""

    run: StudyRun
    state: State
    is_trained: bool
    """Whether there is a model for the next stage."""
    evaluation: Evaluation | None
    """Evaluation of the last checkpoint, on as many episodes as the study asks for."""
    seconds: float | None
    """Training time; None where nothing was trained."""
    error: str | None
    extra: tuple[Evaluation | None, ...] = ()
    """The study's extra evaluations, in its order."""


def read_record(run: StudyRun, code: str) -> Record:
    """The stored record of a run; a fresh one where there is none.

    Raises:
        StorageError: the file is damaged.
    """
    path = record_path(run)
    try:
        return Record(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Record(run.key, code)
    except (OSError, ValueError, TypeError) as error:
        raise StorageError(f"{path}: is damaged — delete it, and {run.folder.path}") from error


def write_record(run: StudyRun, record: Record) -> None:
    """Stores it, whole or not at all."""
    path = record_path(run)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{path.parent}: cannot be made: {error.strerror}") from error
    write_text(path, json.dumps(asdict(record), indent=1) + "\n")


def record_path(run: StudyRun) -> Path:
    """Path of the small file of a run."""
    folder = run.folder.path
    return folder.with_name(f"{folder.name}.json")


def extra_path(run: StudyRun, extra: ExtraEvaluationConfig) -> Path:
    """File of an extra evaluation of a run; other settings have another file."""
    folder = run.folder.path
    content = (extra.options, extra.temperature, extra.constrain_actions)
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]
    return folder.with_name(f"{folder.name}.{extra.name}_{digest}.json")


def read_outcome(run: StudyRun, plan: Plan) -> Outcome:
    """State and results of a run. One with a damaged file has failed, and says so."""
    try:
        return _read_outcome(run, plan)
    except ForethoughtError as error:
        return _without_model(run, plan, State.FAILED, str(error))


def _read_outcome(run: StudyRun, plan: Plan) -> Outcome:
    record, folder = read_record(run, plan.code), run.folder
    if not folder.is_run:
        state = State.MISSING if record.error is None else State.FAILED
        return _without_model(run, plan, state, record.error)
    seconds = training_seconds(folder, record)
    episodes = plan.episodes
    wanted = [(folder.evaluation_path, EvaluationSettings(episodes))]
    wanted += [(extra_path(run, one), one.settings(episodes)) for one in plan.extra_evaluations]
    evaluation, *extra = [
        _evaluation(path, folder, settings) if record.is_trained else None
        for path, settings in wanted
    ]
    if record.error is not None:
        state = State.FAILED
    elif not record.is_trained:
        state = State.INTERRUPTED
    else:
        is_evaluated = evaluation is not None and None not in extra
        state = State.FINISHED if is_evaluated else State.TRAINED
    return Outcome(
        run, state, record.is_trained, evaluation, seconds, record.error, extra=tuple(extra)
    )


def _without_model(run: StudyRun, plan: Plan, state: State, error: str | None) -> Outcome:
    extra = (None,) * len(plan.extra_evaluations)
    return Outcome(run, state, False, None, None, error, extra=extra)


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
    """A stored evaluation, if it is the one that the study asks for."""
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
    sampling = (stored.temperature, stored.holds_actions)
    is_so_sampled = sampling == (wanted.sampling.temperature, wanted.sampling.constrain_actions)
    return stored if is_newest and is_so_long and is_so_sampled else None


Train = Callable[[AnyConfig, Literal["refuse", "resume"]], Path]
"""Trains from the beginning, or resumes; as `train_sft` and `train_ppo` do."""
EvaluateRun = Callable[[AnyConfig, EvaluationSettings], Evaluation]
"""Plays held-out episodes of the config's environment with the newest checkpoint of its run. Stores
the results in the run if it is the run's own environment and decoding is greedy and free."""


class Work(NamedTuple):
    """The functions that train and evaluate a run."""

    train: Train
    evaluate: EvaluateRun
    say: Callable[[str], None]
    """Prints what comes next, in one line."""
    after_run: Callable[[], None]
    """Called after every run, finished or failed."""


def complete_runs(plan: Plan, work: Work, *, only: Sequence[str] = ()) -> list[Outcome]:
    """Trains and evaluates what is not finished.

    A run that fails stops only those that start from it.

    Args:
        only: names of the variants to run; none means all of them.

    Returns:
        State and results of each of these runs.
    """
    runs = plan.runs(only)
    without_model: set[StudyRun] = set()
    for number, run in enumerate(runs, start=1):
        title = f"{number}/{len(runs)}  {run.name} ({', '.join(plan.variants_of(run))})"
        if run.start in without_model:
            without_model.add(run)
            work.say(f"{title}: left out, because {run.start.name if run.start else ''} failed")
            continue
        error = _complete(run, plan, work, title)
        if error is not None:
            work.say(f"{title}: failed: {error}")
            if not read_outcome(run, plan).is_trained:
                without_model.add(run)
        work.after_run()
    return [read_outcome(run, plan) for run in runs]


def _complete(run: StudyRun, plan: Plan, work: Work, title: str) -> str | None:
    """Trains and evaluates one run; returns what went wrong, in one line, or None."""
    try:
        outcome = read_outcome(run, plan)
        if outcome.state is State.FINISHED:
            work.say(f"{title}: finished before")
            return None
        if not outcome.is_trained:
            work.say(f"{title}: {'train on' if run.folder.is_run else 'train'}")
            _train(run, plan, work)
        _evaluate(run, plan, work, title)
        record = read_record(run, plan.code)
        write_record(run, record.ended(is_trained=True))
    except Exception as error:
        if _is_interruption(error):
            raise
        line = _in_one_line(error)
        _remember(run, plan, line)
        return line
    return None


def _train(run: StudyRun, plan: Plan, work: Work) -> None:
    """Trains to the end, or as far as it goes; the time is counted in any case."""
    folder = run.folder
    record = read_record(run, plan.code) if folder.is_run else Record(run.key, plan.code)
    record = record.begun(folder)
    write_record(run, record)
    is_trained = False
    try:
        work.train(run.config, "resume" if folder.is_run else "refuse")
        is_trained = True
    finally:
        write_record(run, record.ended(is_trained=is_trained))


def _evaluate(run: StudyRun, plan: Plan, work: Work, title: str) -> None:
    """Evaluates a run as its own settings have it, and by the study's extra evaluations."""
    outcome = read_outcome(run, plan)
    if outcome.evaluation is None:
        work.say(f"{title}: evaluate on {plan.episodes} held-out episodes")
        work.evaluate(run.config, EvaluationSettings(plan.episodes))
    for extra, found in zip(plan.extra_evaluations, outcome.extra, strict=True):
        if found is None:
            work.say(f"{title}: evaluate on {plan.episodes} held-out episodes, {extra.name}")
            environment = run.config.environment
            changed = replace(environment, options=extra.applied(environment.options))
            config = replace(run.config, environment=changed)
            evaluation = work.evaluate(config, extra.settings(plan.episodes))
            write_text(extra_path(run, extra), evaluation.to_json())


def _remember(run: StudyRun, plan: Plan, line: str) -> None:
    """Stores why a run failed, if the disk lets us: it may be what failed."""
    try:
        record = read_record(run, plan.code)
        write_record(run, record.stopped(run.folder, error=line))
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
