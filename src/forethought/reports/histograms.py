"""Draws how often each value of one number occurs."""

from typing import NamedTuple

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator
from numpy.typing import NDArray

from forethought.reports.charts import NICE, SIZE_IN, TickLabels, style_axes
from forethought.reports.svg import Ink, to_inline_svg

_MOST_BARS = 40


class Bars(NamedTuple):
    """Neighbouring intervals of one width, and how many numbers lie in each."""

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
        return to_inline_svg(figure, name=name, description=description)
