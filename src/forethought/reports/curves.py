"""The section of a report that holds the curves, and where the time went."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from forethought.evaluation.statistics import wilson_interval
from forethought.reports.charts import Curve, Level, Numbers, draw, how_drawn
from forethought.reports.inputs import RunRecord
from forethought.reports.markup import THIN, duration, escape, share, short, speed
from forethought.reports.metrics import (
    CHARTS,
    EPISODES,
    KEY_CHARTS,
    PHASES,
    SUCCESS_RATE,
    Chart,
    Scale,
)
from forethought.runs.metrics import MetricsTable


class _Log(NamedTuple):
    """What the curves are drawn from."""

    metrics: MetricsTable
    x_label: str
    x_per_step: int
    """How far a logged step goes on the horizontal axis."""
    ceiling: float | None


def curves_section(run: RunRecord) -> str:
    """HTML of the key charts; below, folded, all others, and every other number in the log."""
    if run.metrics is None:
        return '<p class="notice">Nothing is logged yet: the first iteration has not ended.</p>'
    log = _log(run, run.metrics)
    known = {metric for chart in CHARTS for metric in chart.metrics}
    rest = [Chart(name, (name,), "", "") for name in log.metrics.names if name not in known]
    charts = _figures(CHARTS, log, prefix="chart")
    key, more = charts[:KEY_CHARTS], charts[KEY_CHARTS:]
    shown = f'<div class="charts">{"".join(key)}</div>{_how_drawn(log)}'
    others = _figures(rest, log, prefix="other-chart")
    return shown + _folded("More charts", more) + _folded("Other logged metrics", others)


def _folded(title: str, figures: list[str]) -> str:
    """Empty where there is nothing."""
    if not figures:
        return ""
    return (
        f'<details><summary>{title} <span class="count">{len(figures)}</span></summary>'
        f'<div class="charts">{"".join(figures)}</div></details>'
    )


def _log(run: RunRecord, metrics: MetricsTable) -> _Log:
    ceiling = None if run.evaluation is None else run.evaluation.ceiling.success_rate
    length = run.config.length
    return _Log(metrics, length.unit, length.per_line, ceiling)


def _figures(charts: Sequence[Chart], log: _Log, *, prefix: str) -> list[str]:
    """One for every chart that has a number to show."""
    with_curves = [(chart, _curves(chart, log)) for chart in charts]
    return [
        _figure(chart, curves, log, f"{prefix}-{index}")
        for index, (chart, curves) in enumerate(with_curves)
        if curves
    ]


def _figure(chart: Chart, curves: list[Curve], log: _Log, name: str) -> str:
    levels: tuple[Level, ...] = ()
    if log.ceiling is not None and chart.metrics == (SUCCESS_RATE,):
        levels = (Level(log.ceiling, "ceiling"),)
    svg = draw(
        curves,
        name=name,
        description=f"{chart.title}: {_in_words(curves)}",
        x_label=log.x_label,
        y_label=chart.y_label,
        scale=chart.scale,
        shows=chart.shows,
        levels=levels,
    )
    heading = f"<b>{escape(chart.title)}</b>"
    if len(curves) == 1:
        heading += f'<span class="latest"><small>last</small> {_last(curves[0], chart)}</span>'
    if chart.caption:
        heading += f"<small>{escape(chart.caption)}</small>"
    return f"<figure><figcaption>{heading}</figcaption>{svg}</figure>"


def _last(curve: Curve, chart: Chart) -> str:
    last = float(curve.y[-1])
    return share(last) if chart.scale is Scale.SHARE else short(last)


def _curves(chart: Chart, log: _Log) -> list[Curve]:
    labels = chart.labels or ("",) * len(chart.metrics)
    return [
        curve
        for metric, label in zip(chart.metrics, labels, strict=True)
        if metric in log.metrics.names and (curve := _curve(metric, label, log)).x.size
    ]


def _curve(metric: str, label: str, log: _Log) -> Curve:
    metrics = log.metrics
    series = metrics.column(metric)
    x, y = metrics.environment_steps(series.steps, per_step=log.x_per_step), series.values
    if metric != SUCCESS_RATE or EPISODES not in metrics.names or not x.size:
        return Curve(x, y, label)
    is_number_T = ~np.isnan(metrics.values[:, metrics.names.index(metric)])
    episodes_T = np.nan_to_num(metrics.values[is_number_T, metrics.names.index(EPISODES)])
    low, high = _wilson_bands(y, episodes_T)
    return Curve(x, y, label, low, high, episodes_T)


def _wilson_bands(rates_T: Numbers, episodes_T: Numbers) -> tuple[Numbers, Numbers]:
    """The interval of each rate; from 0 to 1 where no episode is known."""
    intervals = [
        wilson_interval(min(round(rate * n), int(n)), int(n)) if n >= 1 else (0.0, 1.0)
        for rate, n in zip(rates_T, episodes_T, strict=True)
    ]
    ends = np.array(intervals, dtype=np.float64)
    return ends[:, 0], ends[:, 1]


def _in_words(curves: list[Curve]) -> str:
    return "; ".join(
        f"{curve.label} from {short(curve.y[0])} to {short(curve.y[-1])}".strip()
        for curve in curves
    )


def _how_drawn(log: _Log) -> str:
    points = len(log.metrics.steps)
    return f'<p class="footnote">{escape(in_words)}</p>' if (in_words := how_drawn(points)) else ""


class Phase(NamedTuple):
    """One part of every iteration."""

    name: str
    seconds: float
    """Summed over the run."""


def phases(timings: MetricsTable) -> list[Phase]:
    """The metrics that are durations (`…_s`, not `…_per_s`), in the order of the log."""
    names = [n for n in timings.names if n.endswith("_s") and not n.endswith("_per_s")]
    return [Phase(name, float(timings.column(name).values.sum())) for name in names]


def timing_section(run: RunRecord) -> str:
    """HTML of a bar of durations and of the typical speeds; empty where nothing was timed."""
    if run.timings is None:
        return ""
    return _bar([p for p in phases(run.timings) if p.seconds > 0]) + _speeds(run.timings)


def _bar(parts: list[Phase]) -> str:
    total = sum(part.seconds for part in parts)
    if not parts:
        return ""
    shares = "".join(
        f'<i class="phase-{index % 4}" style="flex-grow:{part.seconds / total:.4f}"></i>'
        for index, part in enumerate(parts)
    )
    legend = "".join(
        f'<li><i class="phase-{index % 4}"></i>{escape(PHASES.get(part.name, part.name))} '
        f"<b>{100 * part.seconds / total:.0f}{THIN}%</b> "
        f"<small>{duration(part.seconds)}</small></li>"
        for index, part in enumerate(parts)
    )
    return (
        f'<div class="timing"><h3>Where the time went <small>{duration(total)} in all</small></h3>'
        f'<div class="bar" aria-hidden="true">{shares}</div><ul>{legend}</ul></div>'
    )


def _speeds(timings: MetricsTable) -> str:
    names = [name for name in timings.names if name.endswith("_per_s")]
    items = "".join(
        f"<li>{escape(name.removesuffix('_per_s').replace('_', ' '))} per second: "
        f"<b>{speed(float(np.median(timings.column(name).values)))}</b> "
        "<small>median</small></li>"
        for name in names
        if timings.column(name).values.size
    )
    return f'<div class="timing"><h3>Speed</h3><ul>{items}</ul></div>' if items else ""
