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
"""Exit code where a run could not be finished."""


@dataclass(frozen=True)
class Study:
    """Settings of `forethought study`."""

    study: Annotated[str, Operand("STUDY.yaml")]
    """Study file: variants, their stages, and seeds."""

    only: tuple[str, ...] = ()
    """Names of the variants to run; by default, all of them."""

    output: str | None = None
    """Folder of the run folders; by default runs/studies/NAME."""

    results: str | None = None
    """Folder of table and plots; by default the folder `results` of the output folder."""

    dry_run: Switch = False
    """List the runs and their state, then stop; nothing is written."""


def study(settings: Study) -> int:
    """Train a matrix of variants × seeds, evaluate each run, and write one table.

    A study file names variants; a variant is a chain of stages (a file for any `train`, with
    overrides), each of which starts from the model of the one before. Every stage of every
    seed is a run. Runs that variants share are trained once; finished runs are kept as long as
    their settings and the code stay the same; the same command resumes after an interruption.

    Examples:
      forethought study configs/studies/bandit.yaml
      forethought study configs/studies/bandit.yaml --dry-run
      forethought study configs/studies/bandit.yaml --only "λ = 0"
    """
    file = Path(settings.study)
    config = load_study(file)
    output = Path(settings.output or f"runs/studies/{config.name}")
    plan = plan_study(file, config, output, code_version())
    _require_variants(settings.only, plan)
    if settings.dry_run:
        _print_runs(plan, settings.only)
        return 0
    results = Path(settings.results) if settings.results else output / "results"
    with continued_by(lambda: f"finished runs are kept; continue with: {_same_again(settings)}"):
        outcomes = _run(plan, results, settings.only)
    return _tell(outcomes, plan, results)


def _run(plan: Plan, results: Path, only: Sequence[str]) -> list[Outcome]:
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError("a study was launched in several processes — it runs in one")
    load_quietly()
    # All of it now, or the first run's time would hold what it takes to load.
    for each in {algorithm_of(run.config) for run in plan.runs(only)}:
        load(each.train)
    from forethought.studies.results import write_results
    from forethought.studies.running import Work, complete_runs

    def train(config: AnyConfig, existing: Literal["refuse", "resume"]) -> Path:
        """As `forethought train` does."""
        _forget_last_run()
        if existing == "refuse":
            algorithm_of(config).check_run(config)
            _require_different(config, plan)
        return algorithm_of(config).train_run(config, existing=existing)

    def after_run() -> None:
        write_results(plan, results)

    return complete_runs(
        plan, Work(train, partial(_evaluate, ScriptedRows()), _say, after_run), only=only
    )


def _forget_last_run() -> None:
    """Accelerate keeps one state per process, and refuses a run of another precision; memory
    is given back before the next model is made."""
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)  # pyright: ignore[reportPrivateUsage]
    gc.collect()


def _require_different(config: AnyConfig, plan: Plan) -> None:
    """Refuses, before a run is trained, more episodes than there are to evaluate it on."""
    own = config.environment
    for options in (own.options, *(extra.applied(own.options) for extra in plan.extra_evaluations)):
        variant = replace(own, options=options)
        require_different(
            open_task(variant, PromptConfig(), default_image_size=None), plan.episodes
        )


def _evaluate(
    scripted: ScriptedRows, config: AnyConfig, settings: EvaluationSettings
) -> Evaluation:
    """As `forethought evaluate` does; episodes sampled or held are not kept."""
    from forethought.agents.sources import find_source
    from forethought.cli.evaluate import Evaluate, evaluate_with_bar

    longest = find_source(config.output).max_new_tokens
    if longest is not None:
        sampling = replace(settings.sampling, max_new_tokens=longest)
        settings = replace(settings, sampling=sampling)
    evaluated = evaluate_with_bar(
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
    return evaluated.evaluation


def _require_variants(names: Sequence[str], plan: Plan) -> None:
    known = [variant.name for variant in plan.variants]
    for name in names:
        if name not in known:
            raise UnknownNameError(f"unknown variant {name!r} — known: {', '.join(known)}")


def _print_runs(plan: Plan, only: Sequence[str]) -> None:
    outcomes = [read_outcome(c, plan) for c in plan.runs(only)]
    print(
        "\n".join(align([("run", "state", "steps", "variants"), *_rows(outcomes, plan)], left=True))
    )
    print()
    for unit, title in ((UPDATES, "optimizer steps"), (ENVIRONMENT_STEPS, ENVIRONMENT_STEPS)):
        of_unit = [o for o in outcomes if o.run.config.length.unit == unit]
        print(f"{title}: {_total_steps(of_unit)}")


def _total_steps(outcomes: Sequence[Outcome]) -> str:
    known = [(o.run.steps, o.is_trained) for o in outcomes if o.run.steps is not None]
    unknown = len(outcomes) - len(known)
    if unknown and not known:
        return "unknown, the stored episodes decide"
    total = sum(steps for steps, _ in known)
    missing = sum(steps for steps, is_trained in known if not is_trained)
    more = f"; unknown for {unknown} more, which learn from stored episodes" if unknown else ""
    return f"{total:,}, of which {missing:,} in runs that are not trained yet{more}"


def _rows(outcomes: Sequence[Outcome], plan: Plan) -> Iterator[tuple[str, ...]]:
    for outcome in outcomes:
        run = outcome.run
        steps = "unknown" if run.steps is None else f"{run.steps:,}"
        yield run.name, outcome.state, steps, ", ".join(plan.variants_of(run))


def _tell(outcomes: Sequence[Outcome], plan: Plan, results: Path) -> int:
    """The table on stdout, what failed on stderr; the exit code."""
    from forethought.studies.results import write_results

    written = write_results(plan, results)
    print(written[0].read_text(encoding="utf-8"))
    print(f"written: {', '.join(map(str, written))}")
    unfinished = [outcome for outcome in outcomes if outcome.state is not State.FINISHED]
    for outcome in unfinished:
        _say(f"{outcome.run.name}: {outcome.state}: {outcome.error or 'not run'}")
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
