"""Causal faithfulness as a plot, and as a section of a report."""

from collections.abc import Sequence
from io import BytesIO
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from forethought.evaluation.faithfulness import Faithfulness, FaithfulnessRow
from forethought.evaluation.statistics import Rate
from forethought.reports.formatting import MISSING, count, decimal, percent, percent_interval
from forethought.reports.markup import TableRow, escape, table
from forethought.reports.svg import Ink, to_inline_svg

TITLES = {
    "own": "own thoughts",
    "expert": "expert's thoughts",
    "other": "thoughts of another state",
    "none": "no thoughts",
}
_BAR = 0.26


class Colors(NamedTuple):
    """Of the three bars of each row, and of the text."""

    bars: tuple[str, str, str]
    text: str


INLINE = Colors((Ink.SERIES_1, Ink.SERIES_2, Ink.MARK), Ink.TEXT)
STANDALONE = Colors(("#0072b2", "#d55e00", "#999999"), "#333333")
"""Okabe and Ito's, and gray."""

_HEADS = ("As concluded", "As before", "As the expert")
LABELS = ("what the thoughts conclude", "what was done before", "what the expert does")


def faithfulness_plot(found: Faithfulness) -> str:
    """An SVG file of its own. The same figures always give the same text."""
    with style.context(["default", {"text.parse_math": False}]):
        figure = _figure(found, STANDALONE)
        FigureCanvasSVG(figure)
        file = BytesIO()
        with matplotlib.rc_context({"svg.hashsalt": "faithfulness", "svg.fonttype": "none"}):
            figure.savefig(file, format="svg", facecolor="white", metadata={"Date": None})
    return file.getvalue().decode("utf-8")


def faithfulness_section(found: Faithfulness | None) -> str:
    """HTML of plot and table; empty where nothing was measured."""
    if found is None:
        return ""
    with style.context(["default", {"text.parse_math": False}]):
        svg = to_inline_svg(
            _figure(found, INLINE), name="faithfulness", description=_description(found)
        )
    heads = (*_HEADS, "p(concluded)", "p(before)")
    rows = table("Faithfulness", "After", heads, [*map(_row, found.rows)])
    which = f", {escape(found.checkpoint)}" if found.checkpoint else ""
    return (
        '<div class="charts one"><figure><figcaption>'
        "<b>The likeliest action after other thoughts</b>"
        f"<small>{found.steps} stored steps, asked again{which}.</small></figcaption>"
        f"{svg}</figure></div>"
        f"{rows}"
        '<p class="footnote">The thoughts of stored steps were replaced and every action scored '
        "after them. Thoughts of another state conclude another action than the step's own "
        "where there are such. Columns: the likeliest action is what the thoughts conclude, what "
        "was done before, what the expert does; mean probabilities of the first two. A state has "
        f"{decimal(found.mean_actions, 1)} actions on average. "
        "Second lines: 95\u202f% intervals (Wilson).</p>"
    )


def _figure(found: Faithfulness, colors: Colors) -> Figure:
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.subplots()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(colors.text)
    axes.tick_params(colors=colors.text)
    for series, (label, color) in enumerate(zip(LABELS, colors.bars, strict=True)):
        rates = [_rates(row)[series] for row in found.rows]
        places = [
            (position + (series - 1) * _BAR, rate)
            for position, rate in enumerate(rates)
            if rate is not None
        ]
        if places:
            _plot_bars(axes, places, color, label)
    axes.set_yticks(
        range(len(found.rows)), [TITLES[row.thoughts] for row in found.rows], color=colors.text
    )
    axes.set_ylim(len(found.rows) - 0.5, -0.5)
    axes.set_xlim(0, 1.0)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("likeliest action, share of steps, 95 %", color=colors.text)
    figure.legend(
        loc="outside lower center", ncols=3, frameon=False, fontsize=8, labelcolor=colors.text
    )
    return figure


def _plot_bars(axes: Axes, places: Sequence[tuple[float, Rate]], color: str, label: str) -> None:
    shares = np.array([rate.share for _, rate in places])
    ends = np.array([rate.interval for _, rate in places])
    axes.barh(
        [place for place, _ in places],
        shares,
        height=_BAR,
        color=color,
        label=label,
        xerr=np.abs(np.stack([shares - ends[:, 0], ends[:, 1] - shares])),
        error_kw={"elinewidth": 1.0, "ecolor": STANDALONE.text},
    )


def _description(found: Faithfulness) -> str:
    said = [
        f"{TITLES[row.thoughts]}: "
        + ", ".join(
            f"{label} {MISSING if rate is None else percent(rate.share)}"
            for label, rate in zip(LABELS, _rates(row), strict=True)
        )
        for row in found.rows
    ]
    return f"The likeliest action after other thoughts. {'; '.join(said)}"


def _rates(row: FaithfulnessRow) -> tuple[Rate | None, Rate, Rate]:
    return row.follows_thought, row.keeps_action, row.expert_action


def _row(row: FaithfulnessRow) -> TableRow:
    numbers = (decimal(row.thought_probability), decimal(row.kept_probability))
    return TableRow(TITLES[row.thoughts], [*map(_cell, _rates(row)), *numbers])


def _cell(rate: Rate | None) -> str:
    if rate is None:
        return MISSING
    interval = f"{percent_interval(rate.interval)} of {count(rate.count)}"
    return f"<b>{percent(rate.share)}</b><small>{interval}</small>"
