"""Draws how often each value of one number occurs."""

from collections.abc import Sequence
from math import exp
from typing import NamedTuple

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from forethought.reports.charts import NICE, SIZE_IN, TickLabels, style_axes
from forethought.reports.markup import Ink, count, to_inline_svg
from forethought.types import Step, Trajectory

_MOST_BARS = 40


class Bars(NamedTuple):
    """Neighboring intervals of one width, and how many numbers lie in each."""

    lefts_B: NDArray[np.float64]
    width: float
    counts_B: NDArray[np.int64]


def bars(values_K: NDArray[np.float64], counts_K: NDArray[np.int64]) -> Bars:
    """A bar for every value where values are few whole numbers; otherwise equal intervals.

    Args:
        values_K: sorted, each once; at least one, all finite.
        counts_K: how often each occurs.
    """
    lowest, highest = float(values_K[0]), float(values_K[-1])
    is_whole = bool((values_K == np.round(values_K)).all())
    if lowest == highest:
        edges = np.array([lowest, highest]) + np.array([-0.5, 0.5]) * (abs(lowest) or 1.0)
    elif is_whole and highest - lowest < _MOST_BARS:
        edges = np.arange(lowest - 0.5, highest + 1.0)
    else:
        edges = np.linspace(lowest, highest, _MOST_BARS + 1)
    counts_B, edges = np.histogram(values_K, bins=edges, weights=counts_K)
    return Bars(edges[:-1], float(edges[1] - edges[0]), counts_B.astype(np.int64))


def draw_histogram(
    values_K: NDArray[np.float64],
    counts_K: NDArray[np.int64],
    *,
    name: str,
    description: str,
    x_label: str,
    y_label: str,
) -> str:
    """An inline SVG.

    Args:
        values_K: as `bars`.
        name: identifies the chart on its page.
        description: for those who cannot see it.
    """
    drawn = bars(values_K, counts_K)
    with style.context(["default", {"text.parse_math": False}]):
        figure = Figure(figsize=SIZE_IN, layout="constrained")
        axes = figure.subplots()
        style_axes(axes, x_label, y_label)
        axes.bar(
            drawn.lefts_B,
            drawn.counts_B,
            width=0.9 * drawn.width,
            align="edge",
            color=Ink.SERIES_1.value,
            linewidth=0,
        )
        if len(values_K) == 1:
            # One bar as wide as the chart would look like a distribution.
            axes.xaxis.set_major_locator(FixedLocator([float(values_K[0])]))
            axes.set_xlim(values_K[0] - 2 * drawn.width, values_K[0] + 2 * drawn.width)
        else:
            is_whole = bool((values_K == np.round(values_K)).all())
            axes.xaxis.set_major_locator(MaxNLocator(5, steps=NICE, integer=is_whole))
        axes.xaxis.set_major_formatter(TickLabels())
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=NICE, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(_counted))
        return to_inline_svg(figure, name=name, description=description)


def _counted(value: float, _position: int) -> str:
    """A tick's label: whole numbers, with separators."""
    return count(round(value))


_ODDS_BARS = 20


class Odds(NamedTuple):
    """p(a|T) of the completions of one iteration."""

    label: str
    probabilities_N: NDArray[np.float64]


def odds_of(label: str, trajectories: Sequence[Trajectory]) -> Odds:
    """Probability of the action's whole token sequence, for every completion with an action."""
    steps = [step for trajectory in trajectories for step in trajectory.steps]
    known = [p for step in steps if (p := action_probability(step)) is not None]
    return Odds(label, np.array(known, dtype=np.float64))


def action_probability(step: Step) -> float | None:
    """p(a|T) as sampled; None where a completion has no action, or no model gave it."""
    start, stop = step.action.action_span
    logprobs = step.completion.logprobs[start:stop]
    return min(1.0, exp(sum(logprobs))) if logprobs else None


def draw_odds(series: Sequence[Odds], *, name: str, description: str) -> str:
    """An inline SVG: shares of completions in twenty equal intervals (InteractiveCOT, Fig. 6b).

    Args:
        series: one or two, each with at least one completion.
        name: identifies the chart on its page.
        description: for those who cannot see it.
    """
    edges = np.linspace(0.0, 1.0, _ODDS_BARS + 1)
    with style.context(["default", {"text.parse_math": False}]):
        figure = Figure(figsize=SIZE_IN, layout="constrained")
        axes = figure.subplots()
        style_axes(axes, "p(action | thoughts)", "share of completions")
        for odds, ink in zip(series, (Ink.SERIES_2, Ink.SERIES_1), strict=False):
            counts_B, _ = np.histogram(odds.probabilities_N, bins=edges)
            shares_B = counts_B / len(odds.probabilities_N)
            axes.stairs(shares_B, edges, color=ink.value, linewidth=1.6, label=odds.label)
        axes.set_xlim(0.0, 1.0)
        axes.set_ylim(bottom=0.0)
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=NICE))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol="\u202f%"))
        legend = axes.legend(frameon=False, loc="upper left", labelcolor=Ink.TEXT.value)
        legend.set_in_layout(False)
        return to_inline_svg(figure, name=name, description=description)
