"""Runs the cells of a study, one after the other."""

import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from forethought.configs.contract import AnyConfig
from forethought.errors import ForethoughtError
from forethought.evaluation.evaluate import EvaluationSettings
from forethought.evaluation.results import Evaluation
from forethought.runs.run_folder import write_text
from forethought.studies.cells import Cell, Plan
from forethought.studies.records import (
    Outcome,
    Record,
    State,
    also_path,
    read_outcome,
    read_record,
    write_record,
)
from forethought.visible import visible

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
