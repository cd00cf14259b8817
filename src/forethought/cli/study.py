"""`forethought study STUDY.yaml`."""

import gc
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from forethought.algorithms.registry import algorithm_of, load
from forethought.cli.flags import Operand, Switch
from forethought.cli.interrupts import continued_by
from forethought.cli.terminal import align
from forethought.configs.contract import ENVIRONMENT_STEPS, UPDATES, AnyConfig
from forethought.configs.parts import PromptConfig
from forethought.errors import ConfigError, UnknownNameError
from forethought.evaluation.evaluate import EvaluationSettings, ScriptedRows, require_different
from forethought.evaluation.results import Evaluation
from forethought.libraries import load_quietly
from forethought.rollouts.task import open_task
from forethought.studies.config import load_study
from forethought.studies.plan import Plan, code_version, plan_study
from forethought.studies.running import Outcome, State, read_outcome

FAILED = 1
"""Exit code where a cell could not be finished."""


@dataclass(frozen=True)
class Study:
    """Which study, and where its results go."""

    study: Annotated[str, Operand("STUDY.yaml")]
    """Rows, their stages, and seeds."""

    only: tuple[str, ...] = ()
    """Names of the rows to run; by default, all of them."""

    output: str | None = None
    """Where the cells' run folders lie; by default runs/studies/NAME."""

    results: str | None = None
    """Where table and plots are written; by default the folder `results` of the output folder."""

    dry_run: Switch = False
    """List the cells and how far they are, then stop; nothing is written."""


def study(settings: Study) -> int:
    """Train a matrix of configurations × seeds, judge each, and write one table.

    A study file names rows; a row is a chain of stages (a file for any `train`, with
    overrides), each of which starts from the model of the one before. Every stage of every
    seed is a cell with a run folder. Cells that rows share are trained once;
    finished cells are kept as long as their settings and the code stay the same; the same
    command again goes on where it was stopped.

    Examples:
      forethought study configs/studies/bandit.yaml
      forethought study configs/studies/bandit.yaml --dry-run
      forethought study configs/studies/bandit.yaml --only "action alone"
    """
    file = Path(settings.study)
    config = load_study(file)
    output = Path(settings.output or f"runs/studies/{config.name}")
    plan = plan_study(file, config, output, code_version())
    _require_rows(settings.only, plan)
    if settings.dry_run:
        _print_cells(plan, settings.only)
        return 0
    results = Path(settings.results) if settings.results else output / "results"
    with continued_by(lambda: f"finished cells are kept; continue with: {_same_again(settings)}"):
        outcomes = _run(plan, results, settings.only)
    return _tell(outcomes, plan, results)


def _run(plan: Plan, results: Path, only: Sequence[str]) -> list[Outcome]:
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError("a study was launched in several processes — it runs in one")
    load_quietly()
    # All of it now, or the first cell's time would hold what it takes to load.
    for each in {algorithm_of(cell.config) for cell in plan.cells(only)}:
        load(each.train)
    from forethought.studies.results import write_results
    from forethought.studies.running import Work, run_cells

    def train(config: AnyConfig, existing: Literal["refuse", "resume"]) -> Path:
        """As `forethought train` does."""
        _forget_last_cell()
        if existing == "refuse":
            algorithm_of(config).check_run(config)
            _require_different(config, plan)
        return algorithm_of(config).train_run(config, existing=existing)

    def after_cell() -> None:
        write_results(plan, results)

    return run_cells(
        plan, Work(train, partial(_judge, ScriptedRows()), _say, after_cell), only=only
    )


def _forget_last_cell() -> None:
    """Accelerate keeps one state per process, and refuses a cell of another precision; memory
    is given back before the next model is made."""
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)  # pyright: ignore[reportPrivateUsage]
    gc.collect()


def _require_different(config: AnyConfig, plan: Plan) -> None:
    """Refuses, before a cell is trained, more episodes than there are to judge it on."""
    own = config.environment
    for options in (own.options, *(judging.applied(own.options) for judging in plan.also_judged)):
        variant = replace(own, options=options)
        require_different(
            open_task(variant, PromptConfig(), default_image_size=None), plan.episodes
        )


def _judge(scripted: ScriptedRows, config: AnyConfig, settings: EvaluationSettings) -> Evaluation:
    """As `forethought evaluate` does; episodes sampled or held are not kept."""
    from forethought.agents.sources import find_source
    from forethought.cli.evaluate import Evaluate, evaluate_with_bar

    longest = find_source(config.output).max_new_tokens
    if longest is not None:
        sampling = replace(settings.sampling, max_new_tokens=longest)
        settings = replace(settings, sampling=sampling)
    judged = evaluate_with_bar(
        Evaluate(
            run=config.output,
            evaluation=settings,
            threads=config.compute.threads,
            environment=config.environment,
            prompt=config.prompt,
        ),
        keep=settings.sampling.temperature == 0 and not settings.sampling.constrain_actions,
        scripted=scripted,
    )
    return judged.evaluation


def _require_rows(names: Sequence[str], plan: Plan) -> None:
    known = [row.name for row in plan.rows]
    for name in names:
        if name not in known:
            raise UnknownNameError(f"unknown row {name!r} — known: {', '.join(known)}")


def _print_cells(plan: Plan, only: Sequence[str]) -> None:
    outcomes = [read_outcome(c, plan) for c in plan.cells(only)]
    print("\n".join(align([("cell", "state", "steps", "rows"), *_rows(outcomes, plan)], left=True)))
    print()
    for unit, title in ((UPDATES, "optimizer steps"), (ENVIRONMENT_STEPS, ENVIRONMENT_STEPS)):
        of_unit = [o for o in outcomes if o.cell.config.length.unit == unit]
        print(f"{title}: {_total_steps(of_unit)}")


def _total_steps(outcomes: Sequence[Outcome]) -> str:
    known = [(o.cell.steps, o.is_trained) for o in outcomes if o.cell.steps is not None]
    unknown = len(outcomes) - len(known)
    if unknown and not known:
        return "unknown, the stored episodes decide"
    total = sum(steps for steps, _ in known)
    missing = sum(steps for steps, is_trained in known if not is_trained)
    more = f"; unknown for {unknown} more, which learn from stored episodes" if unknown else ""
    return f"{total:,}, of which {missing:,} in cells that are not trained yet{more}"


def _rows(outcomes: Sequence[Outcome], plan: Plan) -> Iterator[tuple[str, ...]]:
    for outcome in outcomes:
        cell = outcome.cell
        steps = "unknown" if cell.steps is None else f"{cell.steps:,}"
        yield cell.name, outcome.state, steps, ", ".join(plan.rows_of(cell))


def _tell(outcomes: Sequence[Outcome], plan: Plan, results: Path) -> int:
    """The table on stdout, what failed on stderr; the exit code."""
    from forethought.studies.results import write_results

    written = write_results(plan, results)
    print(written[0].read_text(encoding="utf-8"))
    print(f"written: {', '.join(map(str, written))}")
    unfinished = [outcome for outcome in outcomes if outcome.state is not State.FINISHED]
    for outcome in unfinished:
        _say(f"{outcome.cell.name}: {outcome.state}: {outcome.error or 'not run'}")
    return FAILED if unfinished else 0


def _say(line: str) -> None:
    """One line about what comes next, apart from the results on stdout."""
    print(line, file=sys.stderr, flush=True)


def _same_again(settings: Study) -> str:
    """What a person types to go on."""
    words = ["forethought", "study", settings.study]
    if settings.only:
        words += ["--only", *settings.only]
    for flag, value in (("--output", settings.output), ("--results", settings.results)):
        if value is not None:
            words += [flag, value]
    return shlex.join(words)
