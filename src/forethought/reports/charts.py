"""Draws one chart of curves over training: points, intervals where there are any, the trend."""

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from typing import NamedTuple

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, Formatter, FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import NDArray

from forethought.reports.markup import Ink, share, short, to_inline_svg
from forethought.reports.metrics import Scale

SIZE_IN = (3.8, 2.3)
_FONT_SIZE = 9.5
NICE = (1, 2, 2.5, 5, 10)
"""Ticks are multiples of these."""
_DOTTED_UP_TO = 60
"""Points are marked one by one while they can be told apart."""

_FEW = 5
"""So few points make no line that the eye could follow: they are drawn larger."""


Numbers = NDArray[np.float64]

_MOST_POINTS = 240
"""A longer curve is drawn as the mean and the range of neighboring points."""
_LONGEST_REACH = 25


class Curve(NamedTuple):
    """One line of a chart; every array is as long as the others."""

    x: Numbers
    y: Numbers
    label: str = ""
    """Needed where a chart has several."""
    low: Numbers | None = None
    high: Numbers | None = None
    weights: Numbers | None = None
    """How much each point counts in the trend; all the same where there are none."""


class Level(NamedTuple):
    """A horizontal line to compare with."""

    y: float
    label: str


class Look(NamedTuple):
    """What tells one curve of a chart from the other, also without color."""

    ink: Ink
    line: str


_LOOKS = (
    Look(Ink.SERIES_1, "-"),
    Look(Ink.SERIES_2, "--"),
    Look(Ink.SERIES_3, "-."),
    Look(Ink.SERIES_4, ":"),
)


def draw(
    curves: list[Curve],
    *,
    name: str,
    description: str,
    x_label: str,
    y_label: str,
    scale: Scale = Scale.NUMBER,
    shows: tuple[float, ...] = (),
    levels: tuple[Level, ...] = (),
) -> str:
    """An inline SVG.

    Args:
        curves: at most four, each with at least one point. A logarithmic scale leaves out
            points that are not above 0; where none is, the scale is a plain one.
        name: identifies the chart on its page.
        description: for those who cannot see it.
        shows: values that the vertical axis reaches, whatever the data.
    """
    if scale is Scale.LOG:
        drawable = [rest for curve in curves if (rest := positive(curve)).x.size]
        if drawable:
            curves = drawable
        else:
            scale, shows = Scale.NUMBER, (*shows, 0.0)
    with style.context(["default", {"text.parse_math": False}]):
        figure = Figure(figsize=SIZE_IN, layout="constrained")
        axes = figure.subplots()
        style_axes(axes, x_label, y_label)
        for curve, look in zip(curves, _LOOKS[: len(curves)], strict=True):
            _plot(axes, thinned(curve), look, is_log=scale is Scale.LOG)
        _set_x_range(axes, np.concatenate([curve.x for curve in curves]))
        _set_y_range(axes, np.concatenate([curve.y for curve in curves]), scale, shows)
        for level in levels:
            _plot_level(axes, level)
        if len(curves) > 1:
            axes.legend(
                frameon=False,
                fontsize=_FONT_SIZE,
                labelcolor=Ink.TEXT.value,
                ncols=1 if len(curves) == 2 else 2,
            )
        return to_inline_svg(figure, name=name, description=description)


def style_axes(axes: Axes, x_label: str, y_label: str) -> None:
    """Rules, grid, ticks and labels as on every chart of a page."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    rule, text = Ink.RULE.value, Ink.TEXT.value
    axes.spines["bottom"].set_color(rule)
    axes.grid(axis="y", color=rule, linewidth=0.6, alpha=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(color=rule, labelcolor=text, labelsize=_FONT_SIZE, length=3, width=0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(x_label, color=text, fontsize=_FONT_SIZE)
    axes.set_ylabel(y_label, color=text, fontsize=_FONT_SIZE)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=NICE, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=NICE))
    axes.yaxis.set_major_formatter(TickLabels())


def _plot(axes: Axes, curve: Curve, look: Look, *, is_log: bool) -> None:
    x, y, color = curve.x, curve.y, look.ink.value
    if curve.low is not None and curve.high is not None:
        axes.fill_between(x, curve.low, curve.high, color=color, alpha=0.16, linewidth=0)
    has_trend = trend_reach(len(x)) > 0
    if len(x) <= _DOTTED_UP_TO:
        axes.plot(
            x,
            y,
            "o",
            color=color,
            alpha=0.55 if has_trend else 1.0,
            markersize=2.8 if len(x) > _FEW else 4.5,
            markeredgewidth=0,
        )
    else:
        axes.plot(x, y, color=color, alpha=0.35, linewidth=0.8)
    line = 10 ** trend(np.log10(y)) if is_log else trend(y, curve.weights)
    axes.plot(x, line, linestyle=look.line, color=color, linewidth=1.6, label=curve.label)


def _plot_level(axes: Axes, level: Level) -> None:
    color = Ink.MARK.value
    axes.axhline(level.y, color=color, linewidth=1, linestyle=":", zorder=1.5)
    axes.annotate(
        level.label,
        (1, level.y),
        xycoords=("axes fraction", "data"),
        xytext=(-2, 2),  # Above: what a level limits lies below it.
        textcoords="offset points",
        ha="right",
        va="bottom",
        color=color,
        fontsize=_FONT_SIZE - 0.5,
    )


def _set_x_range(axes: Axes, x: Numbers) -> None:
    first, last = float(x.min()), float(x.max())
    if first == last:
        axes.set_xticks([first])
    axes.xaxis.set_major_formatter(FuncFormatter(_compact(last)))
    room = 0.02 * (last - first) or 1.0
    axes.set_xlim(first - room, last + room)


def _set_y_range(axes: Axes, y: Numbers, scale: Scale, shows: tuple[float, ...]) -> None:
    if scale is Scale.LOG:
        _set_decades(axes, y)
        return
    lowest, highest = min(*shows, y.min(), y.max()), max(*shows, y.min(), y.max())
    room = 0.06 * ((highest - lowest) or abs(highest) or 1.0)
    # An end that is always shown is an end of the scale; a line on it needs its own width.
    below = 0.0 if lowest in shows else room
    above = 0.2 * room if highest in shows else room
    axes.set_ylim(lowest - below, highest + above)
    if scale is Scale.SHARE:
        axes.yaxis.set_major_formatter(TickLabels(share))


def _set_decades(axes: Axes, y: Numbers) -> None:
    """A logarithmic axis from one power of ten to another."""
    first, last = floor(log10(y.min())), ceil(log10(y.max()))
    last = max(last, first + 1)
    every = ceil((last - first) / 5)
    axes.set_yscale("log")
    axes.set_ylim(10.0**first, 10.0**last)
    axes.yaxis.set_major_locator(FixedLocator([10.0**n for n in range(first, last + 1, every)]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(TickLabels())


class TickLabels(Formatter):
    """As many significant digits, three or more, as tell the ticks of an axis apart."""

    def __init__(self, write: Callable[[float, int], str] = short) -> None:
        self._write = write

    def __call__(self, x: float, pos: int | None = None) -> str:
        return self._write(x, 3)

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Labels of all ticks, no two equal."""
        labels: list[str] = []
        for digits in range(3, 18):  # 17 digits tell any two doubles apart.
            labels = [self._write(value, digits) for value in values]
            if len(set(labels)) == len(set(values)):
                break
        return labels


def _compact(largest: float) -> Callable[[float, int | None], str]:
    """One unit for a whole axis: `2,500`, `7.5k` before `10k`, `0.5M` before `1M`."""
    scale, unit = (1e6, "M") if largest >= 1e6 else (1e3, "k") if largest >= 1e4 else (1, "")

    def label(value: float, _: int | None) -> str:
        return f"{value / scale:,.10g}{unit if value else ''}"

    return label


def thinned(curve: Curve) -> Curve:
    """The same curve with at most `_MOST_POINTS` points."""
    size = _neighbors(len(curve.x))
    if size == 1:
        return curve
    starts = np.arange(0, len(curve.x), size)
    counts = np.diff(np.append(starts, len(curve.x)))

    def mean(values: Numbers) -> Numbers:
        return np.add.reduceat(values, starts) / counts

    if curve.low is None or curve.high is None:
        low, high = np.minimum.reduceat(curve.y, starts), np.maximum.reduceat(curve.y, starts)
    else:
        # The mean of intervals, as of points: what a typical point of these was known to.
        low, high = mean(curve.low), mean(curve.high)
    weights = None if curve.weights is None else mean(curve.weights)
    return Curve(mean(curve.x), mean(curve.y), curve.label, low, high, weights)


def positive(curve: Curve) -> Curve:
    """The points that a logarithmic axis can show; bands and weights are not kept."""
    is_positive = curve.y > 0
    return Curve(curve.x[is_positive], curve.y[is_positive], curve.label)


def trend(y: Numbers, weights: Numbers | None = None) -> Numbers:
    """The weighted mean of each point and its neighbors, as many on either side.

    Towards the ends there are fewer of them, so that the trend of a steep curve begins
    and ends where the curve does.
    """
    n, reach = len(y), trend_reach(len(y))
    w = np.ones(n) if weights is None else weights
    at = np.arange(n)
    reach_T = np.minimum(reach, np.minimum(at, n - 1 - at))
    start, stop = at - reach_T, at + reach_T + 1
    total, summed = (np.append(0.0, np.cumsum(values)) for values in (w, w * y))
    weight = total[stop] - total[start]
    mean = np.divide(summed[stop] - summed[start], weight, out=np.zeros(n), where=weight > 0)
    return np.where(weight > 0, mean, y)


def trend_reach(points: int) -> int:
    """How many neighbors on either side a trend takes in."""
    return min(_LONGEST_REACH, points // 10)


def how_drawn(points: int) -> str:
    """What became of a curve of so many points, in a sentence or two; empty if nothing did."""
    size = _neighbors(points)
    reach = trend_reach(ceil(points / size))
    sentences: list[str] = []
    if size > 1:
        sentences.append(f"Every {size} neighboring points are drawn as their mean and range.")
    if reach > 0:
        sentences.append(f"Lines: the mean of up to {(2 * reach + 1) * size} neighboring points.")
    return " ".join(sentences)


def _neighbors(points: int) -> int:
    """How many points of a curve become one."""
    return max(1, ceil(points / _MOST_POINTS))
