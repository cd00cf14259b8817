"""Results of a study so far: a page, its plots, and the same figures as JSON."""

import json
from collections.abc import Sequence
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from forethought.configs.contract import ENVIRONMENT_STEPS
from forethought.durable import write_text
from forethought.errors import StorageError
from forethought.evaluation.results import EvaluationRow
from forethought.reports.charts import Curve, trend
from forethought.runs.metrics import read_metrics
from forethought.studies.plan import Plan, StudyRun, Variant
from forethought.studies.running import Outcome, read_outcome
from forethought.studies.summary import (
    Pool,
    Reference,
    StageSummary,
    Summary,
    summarize,
    write_table,
)

_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Okabe and Ito's, which the color-blind can tell apart too."""
_LINES = ("-", "--", "-.", ":")
_GRAY = "#666666"
_WIDTH_IN = 7.0
_LEGEND_COLUMNS = 2
_SUCCESS = "success_rate"


class _LineStyle(NamedTuple):
    color: str
    line: str


def success_plot(summary: Summary) -> str | None:
    """Success of the last stage: over all episodes with its interval, and of each seed."""
    shown = [stage for stage in summary.stages if stage.is_last and stage.pool is not None]
    if not shown:
        return None
    with style.context(["default", {"text.parse_math": False}]):
        figure = Figure(figsize=(_WIDTH_IN, 1.0 + 0.42 * len(shown)), layout="constrained")
        axes = figure.subplots()
        _plain_style(axes)
        for position, stage in enumerate(shown):
            _plot_stage(axes, position, stage, _style_of(stage.variant, summary).color)
        for reference in summary.references if len(summary.references) == 1 else ():
            _plot_level(axes, reference.random.success_rate, "random")
            _plot_level(axes, reference.ceiling.success_rate, "ceiling")
        axes.set_yticks(range(len(shown)), [stage.variant for stage in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlim(-0.02, 1.02)
        axes.xaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_xlabel("success on held-out episodes, 95 %")
        return _svg(figure, f"{summary.plan.name}-success")


def curves_plot(summary: Summary) -> str | None:
    """Success in training over environment steps: each seed thin, their mean thick."""
    curves_of = {variant.name: _curves(variant) for variant in summary.plan.variants}
    if not any(curves_of.values()):
        return None
    lines = -(-sum(map(bool, curves_of.values())) // _LEGEND_COLUMNS)
    with style.context(["default", {"text.parse_math": False}]):
        figure = Figure(figsize=(_WIDTH_IN, 3.8 + 0.2 * lines), layout="constrained")
        axes = figure.subplots()
        _plain_style(axes)
        for name, curves in curves_of.items():
            if curves:
                _plot_variant(axes, name, curves, _style_of(name, summary))
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_xlabel("environment steps")
        axes.set_ylabel("success in training")
        # Below the axes: over them it would hide the curves.
        figure.legend(frameon=False, fontsize=9, loc="outside lower center", ncols=_LEGEND_COLUMNS)
        return _svg(figure, f"{summary.plan.name}-curves")


def _curves(variant: Variant) -> list[Curve]:
    """One for each seed that has begun to learn from rewards."""
    return [curve for chain in variant.chains if (curve := learning_curve(chain)) is not None]


def learning_curve(chain: Sequence[StudyRun]) -> Curve | None:
    """Success over the environment steps of a chain's stages, one after the other."""
    xs: list[float] = []
    ys: list[float] = []
    before = 0.0
    for run in chain:
        length, path = run.config.length, run.folder.metrics_path
        if length.unit != ENVIRONMENT_STEPS or not path.is_file():
            continue
        metrics = read_metrics(path)
        if _SUCCESS in metrics.names:
            series = metrics.column(_SUCCESS)
            steps_T = metrics.environment_steps(series.steps, per_step=length.per_line)
            xs += (before + steps_T).tolist()
            ys += series.values.tolist()
        assert run.steps is not None
        before = max([before + run.steps, *xs[-1:]])  # DPO's rounds end some steps late
    return Curve(np.array(xs), trend(np.array(ys))) if xs else None


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """The mean of some curves where all of them have begun and none has ended.

    It has a point wherever one of them has; the others are there what the line between their
    neighboring points is. Seeds that play whole episodes never meet at the same step.
    """
    first, last = max(curve.x[0] for curve in curves), min(curve.x[-1] for curve in curves)
    every = np.unique(np.concatenate([curve.x for curve in curves]))
    x = every[(every >= first) & (every <= last)]
    return Curve(x, np.mean([np.interp(x, curve.x, curve.y) for curve in curves], axis=0))


def _plot_stage(axes: Axes, position: int, stage: StageSummary, color: str) -> None:
    assert stage.pool is not None
    low, high = stage.pool.success_interval
    rate = stage.pool.success_rate
    axes.errorbar(
        [rate],
        [position],
        xerr=[[max(0.0, rate - low)], [max(0.0, high - rate)]],
        fmt="o",
        color=color,
        capsize=4,
        linewidth=1.8,
    )
    rates = [o.evaluation.policy.success_rate for o in stage.outcomes if o.evaluation is not None]
    seeds = [rate for rate in rates if rate is not None]
    below = [position + 0.22] * len(seeds)
    axes.plot(seeds, below, "|", color=color, markersize=8, alpha=0.8)


def _plot_level(axes: Axes, rate: float | None, label: str) -> None:
    if rate is not None:
        axes.axvline(rate, color=_GRAY, linewidth=1, linestyle=":", zorder=0)
        axes.annotate(
            label,
            (rate, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            color=_GRAY,
            fontsize=8,
        )


def _plot_variant(axes: Axes, name: str, curves: Sequence[Curve], line_style: _LineStyle) -> None:
    for curve in curves:
        axes.plot(curve.x, curve.y, color=line_style.color, linewidth=0.8, alpha=0.45)
    mean = mean_curve(curves)
    axes.plot(
        mean.x, mean.y, color=line_style.color, linestyle=line_style.line, linewidth=2.0, label=name
    )


def _style_of(variant: str, summary: Summary) -> _LineStyle:
    """A variant styles the same in both plots, whatever else is shown."""
    names = [variant.name for variant in summary.plan.variants]
    styles = dict(zip(names, map(_LineStyle, cycle(_COLORS), cycle(_LINES)), strict=False))
    return styles[variant]


def _plain_style(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(color=_GRAY, linewidth=0.4, alpha=0.3)
    axes.set_axisbelow(True)


def _svg(figure: Figure, name: str) -> str:
    """The same figure and name always give the same text."""
    FigureCanvasSVG(figure)
    file = BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(file, format="svg", facecolor="white", metadata={"Date": None})
    return file.getvalue().decode("utf-8")


SCHEMA_VERSION = 2
TABLE, DATA, SUCCESS, CURVES = "table.md", "results.json", "success.svg", "curves.svg"


def write_results(plan: Plan, folder: Path) -> list[Path]:
    """Writes the results of all runs as they are on the disk now, finished or not.

    Returns:
        What was written, the page first.

    Raises:
        StorageError: the disk refuses.
    """
    outcomes = [read_outcome(run, plan) for run in plan.runs()]
    summary = summarize(plan, outcomes)
    plots = {SUCCESS: success_plot(summary), CURVES: curves_plot(summary)}
    drawn = {name: svg for name, svg in plots.items() if svg is not None}
    texts = {TABLE: write_table(summary, list(drawn)), DATA: to_json(summary), **drawn}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{folder}: cannot be made: {error.strerror}") from error
    for name, text in texts.items():
        write_text(folder / name, text)
    return [folder / name for name in texts]


def to_json(summary: Summary) -> str:
    """Text of `results.json`. Rates are from 0 to 1, times in seconds; null: there is none."""
    content = {
        "schema_version": SCHEMA_VERSION,
        "study": summary.plan.name,
        "code_version": summary.plan.code,
        "episodes": summary.plan.episodes,
        "training_s": summary.seconds,
        "references": [_reference(reference) for reference in summary.references],
        "stages": [_stage(stage, summary.plan) for stage in summary.stages],
        "runs": [_run(outcome, summary.plan) for outcome in summary.outcomes],
    }
    return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _stage(stage: StageSummary, plan: Plan) -> dict[str, Any]:
    return {
        "variant": stage.variant,
        "stage": stage.number,
        "is_last": stage.is_last,
        "algorithm": stage.algorithm,
        "seeds": [_of_seed(outcome) for outcome in stage.outcomes],
        "pooled": None if stage.pool is None else _pool(stage.pool),
        "extra_evaluations": {
            extra.name: None if found is None else _pool(found)
            for extra, found in zip(plan.extra_evaluations, stage.extra, strict=True)
        },
        "training_s": stage.seconds,
    }


def _of_seed(outcome: Outcome) -> dict[str, Any]:
    evaluation = outcome.evaluation
    return {
        "seed": outcome.run.config.seed,
        "run": outcome.run.key,
        "state": outcome.state,
        "policy": None if evaluation is None else _agent(evaluation.policy),
    }


def _pool(pool: Pool) -> dict[str, Any]:
    return {
        "seeds": pool.seeds,
        "episodes": pool.episodes,
        "successes": pool.successes,
        "success_rate": pool.success_rate,
        "success_interval": list(pool.success_interval),
        "seed_mean": pool.seed_mean,
        "seed_deviation": pool.seed_deviation,
        "seed_range": list(pool.seed_range),
        "mean_return": pool.mean_return,
        "return_interval": None if pool.return_interval is None else list(pool.return_interval),
        "invalid_rate": pool.invalid_rate,
    }


def _reference(reference: Reference) -> dict[str, Any]:
    return {
        "environment": reference.environment,
        "random": _agent(reference.random),
        "expert": _agent(reference.expert),
        "ceiling": _agent(reference.ceiling),
    }


def _agent(row: EvaluationRow) -> dict[str, Any]:
    return {
        "success_rate": row.success_rate,
        "success_interval": None if row.success_interval is None else list(row.success_interval),
        "mean_return": row.mean_return,
        "return_interval": None if row.return_interval is None else list(row.return_interval),
        "invalid_rate": row.invalid_rate,
        "episodes": row.episodes,
        "failures": row.failures,
    }


def _run(outcome: Outcome, plan: Plan) -> dict[str, Any]:
    run = outcome.run
    return {
        "key": run.key,
        "folder": run.name,
        "variants": plan.variants_of(run),
        "algorithm": run.algorithm,
        "seed": run.config.seed,
        "starts_from": None if run.start is None else run.start.key,
        "state": outcome.state,
        "checkpoint": None if outcome.evaluation is None else outcome.evaluation.checkpoint,
        "training_s": outcome.seconds,
        "error": outcome.error,
    }
