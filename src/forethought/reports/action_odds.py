"""Draws how certain actions were, given their thoughts, early and late in a run."""

from collections.abc import Sequence
from math import exp
from typing import NamedTuple

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from forethought.reports.charts import NICE, SIZE_IN, style_axes
from forethought.reports.svg import Ink, to_inline_svg
from forethought.types import Step, Trajectory

_BARS = 20


class Odds(NamedTuple):
    """p(a|T) of the answers of one iteration."""

    label: str
    probabilities_N: NDArray[np.float64]


def odds_of(label: str, trajectories: Sequence[Trajectory]) -> Odds:
    """Of every answer that held an action, the probability of its whole token sequence."""
    steps = [step for trajectory in trajectories for step in trajectory.steps]
    known = [p for step in steps if (p := action_probability(step)) is not None]
    return Odds(label, np.array(known, dtype=np.float64))


def action_probability(step: Step) -> float | None:
    """p(a|T) as sampled; None where an answer has no action, or no model gave it."""
    start, stop = step.action.action_span
    logprobs = step.completion.logprobs[start:stop]
    return min(1.0, exp(sum(logprobs))) if logprobs else None


def draw_odds(series: Sequence[Odds], *, name: str, description: str) -> str:
    """An inline SVG: shares of answers in twenty equal intervals (InteractiveCOT, Fig. 6b).

    Args:
        series: one or two, each with at least one answer.
        name: identifies the chart on its page.
        description: for those who cannot see it.
    """
    edges = np.linspace(0.0, 1.0, _BARS + 1)
    with style.context(["default", {"text.parse_math": False}]):
        figure = Figure(figsize=SIZE_IN, layout="constrained")
        axes = figure.subplots()
        style_axes(axes, "p(action | thoughts)", "share of answers")
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
