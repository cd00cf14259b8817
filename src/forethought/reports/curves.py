"""The section of a report that holds the curves."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from forethought.config import SFTConfig
from forethought.config_dpo import DPOConfig
from forethought.config_file import OfflineConfig
from forethought.evaluation.statistics import wilson_interval
from forethought.reports.catalogue import CHARTS, Chart
from forethought.reports.charts import Level, Scale, draw
from forethought.reports.inputs import RunRecord
from forethought.reports.markup import escape
from forethought.reports.numerals import share, short
from forethought.reports.points import Curve, Numbers, how_drawn
from forethought.runs.metrics import MetricsTable

_SUCCESS, _EPISODES = "success_rate", "episodes"


class _Log(NamedTuple):
    """What the curves are drawn from."""

    metrics: MetricsTable
    x_label: str
    x_per_step: int
    """How far a logged step goes on the horizontal axis."""
    ceiling: float | None


def curves_section(run: RunRecord) -> str:
    """HTML of the known charts, and below, folded, of every other number in the log."""
    if run.metrics is None:
        return '<p class="notice">Nothing is logged yet: the first round has not ended.</p>'
    log = _log(run, run.metrics)
    known = {metric for chart in CHARTS for metric in chart.metrics}
    rest = [Chart(name, (name,), "", "") for name in log.metrics.names if name not in known]
    shown = _figures(CHARTS, log, prefix="chart")
    others = _figures(rest, log, prefix="other-chart")
    html = f'<div class="charts">{"".join(shown)}</div>{_how_drawn(log)}'
    if others:
        count = f'<span class="count">{len(others)} more</span>'
        html += (
            f"<details><summary>All metrics {count}</summary>"
            f'<div class="charts">{"".join(others)}</div></details>'
        )
    return html


def _log(run: RunRecord, metrics: MetricsTable) -> _Log:
    ceiling = None if run.evaluation is None else run.evaluation.ceiling.success_rate
    if isinstance(run.config, DPOConfig) and run.config.data is not None:
        return _Log(metrics, "passes over the pairs", 1, ceiling)
    if not isinstance(run.config, SFTConfig | OfflineConfig):
        per_step = run.config.rollout.steps_per_iteration
        return _Log(metrics, "environment steps", per_step, ceiling)
    return _Log(metrics, "updates", 1, ceiling)


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
    if log.ceiling is not None and chart.metrics == (_SUCCESS,):
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
    if metric != _SUCCESS or _EPISODES not in metrics.names or not x.size:
        return Curve(x, y, label)
    is_number_T = ~np.isnan(metrics.values[:, metrics.names.index(metric)])
    episodes_T = np.nan_to_num(metrics.values[is_number_T, metrics.names.index(_EPISODES)])
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
