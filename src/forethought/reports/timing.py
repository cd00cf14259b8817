"""Where a run's wall-clock time went."""

from typing import NamedTuple

import numpy as np

from forethought.reports.inputs import RunRecord
from forethought.reports.markup import escape
from forethought.reports.numerals import THIN, duration, speed
from forethought.runs.metrics import MetricsTable

_IN_WORDS = {
    "collect_s": "playing",
    "rescore_s": "recomputing log-probs",
    "reference_s": "asking the reference",
    "update_s": "updating weights",
}


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
        f'<li><i class="phase-{index % 4}"></i>{escape(_IN_WORDS.get(part.name, part.name))} '
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
