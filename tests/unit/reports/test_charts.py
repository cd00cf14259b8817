"""Charts as drawings inside a page: their own names, the page's colors, the same every time."""

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from forethought.reports.charts import Curve, Level, Scale, draw
from forethought.reports.markup import Ink, to_inline_svg
from tests.unit.reports.builders import HOSTILE

LINE = Curve(np.arange(20.0), np.linspace(0.1, 0.9, 20), "line")


def chart(*curves: Curve, name: str = "chart-0", **options: object) -> str:
    settings = {"description": "d", "x_label": "updates", "y_label": "success"} | options
    return draw(list(curves or (LINE,)), name=name, **settings)  # pyright: ignore[reportArgumentType]


def words(svg: str) -> list[str]:
    """What is written in a chart, in order."""
    texts = ElementTree.fromstring(svg).iter("text")
    return ["".join(text.itertext()).strip() for text in texts]


def ticks(svg: str, labels: tuple[str, str] = ("updates", "success")) -> list[str]:
    """Labels of the vertical axis."""
    shown = words(svg)
    return shown[shown.index(labels[0]) + 1 : shown.index(labels[1])]


def test_the_same_chart_is_the_same_text() -> None:
    assert chart() == chart()


def test_a_page_of_charts_has_no_identifier_twice() -> None:
    both = chart(name="chart-1") + chart(name="chart-2")
    defined = re.findall(r'\bid="([^"]+)"', both)
    assert defined
    assert len(set(defined)) == len(defined)
    used = re.findall(r"url\(#([^)]+)\)|href=\"#([^\"]+)\"", both)
    assert {a or b for a, b in used} <= set(defined)


def test_a_chart_takes_colors_and_font_from_the_page() -> None:
    others = [LINE._replace(label=label) for label in ("other", "third", "fourth")]
    svg = chart(LINE, *others, levels=(Level(1.0, "ceiling"),))
    for ink in Ink:
        assert f"var(--chart-{ink.name.lower().replace('_', '-')})" in svg
        assert ink.value not in svg
    assert "font-family" not in svg
    assert not re.search(r"#[0-9a-f]{6}\b", svg)


def test_a_chart_is_told_to_those_who_cannot_see_it() -> None:
    [label] = re.findall(r'^<svg [^>]*aria-label="([^"]*)"', chart(description='a "rise" <b>'))
    assert label == "a &quot;rise&quot; &lt;b&gt;"


def test_text_in_a_chart_is_text() -> None:
    """A metric may have any name: neither markup nor a formula of matplotlib's."""
    curve = LINE._replace(label="$x_{<b>$")
    svg = chart(curve, LINE._replace(label="b"), y_label="</svg><script>", description=HOSTILE)
    assert "<script" not in svg
    assert svg.count("</svg>") == 1
    assert ElementTree.fromstring(svg.replace("\x00", "")) is not None


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        pytest.param(
            [0.1, 0.4],
            {"scale": Scale.SHARE, "shows": (0.0, 1.0)},
            ["0 %", "25 %", "50 %", "75 %", "100 %"],
            id="a share, all of its range",
        ),
        pytest.param([3, 12], {"shows": (0.0,)}, ["0", "5", "10"], id="from zero"),
        pytest.param([-3, -1], {}, ["−3", "−2.5", "−2", "−1.5", "−1"], id="a true minus sign"),
        pytest.param([0.02, 30], {"scale": Scale.LOG}, ["0.01", "0.1", "1", "10", "100"], id="log"),
        pytest.param([0, 0], {"scale": Scale.LOG}, None, id="no logarithm of zero"),
        pytest.param([5, 5], {}, None, id="a level"),
        pytest.param([0.99921, 0.99979], {}, None, id="more digits than three tell apart"),
        pytest.param([0.99921, 0.99979], {"scale": Scale.SHARE}, None, id="more digits of a share"),
        pytest.param([100_000, 100_003], {}, None, id="a large offset"),
        pytest.param([1e-9, 1e9], {"scale": Scale.LOG}, None, id="many decades"),
    ],
)
def test_the_vertical_axis(
    values: list[float], options: dict[str, Any], expected: list[str] | None
) -> None:
    shown = ticks(chart(Curve(np.array([1.0, 2.0]), np.array(values)), **options))
    shown = [label.replace("\u202f", " ") for label in shown]
    assert 2 <= len(shown) <= 7
    assert len(set(shown)) == len(shown)
    if expected is not None:
        assert shown == expected


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (2000.0, ["0", "500", "1,000", "1,500", "2,000"]),
        (10_240.0, ["0", "2.5k", "5k", "7.5k", "10k"]),
        (60_000.0, ["0", "20k", "40k", "60k"]),
        (2e6, ["0", "0.5M", "1M", "1.5M", "2M"]),
    ],
)
def test_the_horizontal_axis_has_one_unit(last: float, expected: list[str]) -> None:
    shown = words(chart(Curve(np.array([0.0, last]), np.array([1.0, 2.0]))))
    assert shown[: shown.index("updates")] == expected


def test_a_single_point_is_drawn_and_labeled() -> None:
    svg = chart(Curve(np.array([512.0]), np.array([0.5])))
    assert "512" in words(svg)
    assert "<use" in svg


def test_two_curves_are_told_apart_by_line_and_name() -> None:
    svg = chart(LINE._replace(label="thoughts"), LINE._replace(label="action"))
    assert {"thoughts", "action"} <= set(words(svg))
    assert "stroke-dasharray" in svg


def test_every_curve_of_a_chart_is_drawn() -> None:
    """Four, each in a color and a line of its own."""
    names = ["perception", "inference", "consistency", "strict format"]
    svg = chart(*(LINE._replace(label=name) for name in names))
    assert set(names) <= set(words(svg))
    for number in range(1, 5):
        assert f"stroke: var(--chart-series-{number})" in svg
    assert len(set(re.findall(r"stroke-dasharray: [^;\"]+", svg))) == 3, "and one is solid"


def test_more_curves_than_can_be_told_apart_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        chart(*(LINE._replace(label=str(number)) for number in range(5)))


def test_a_level_is_named() -> None:
    assert "ceiling" in words(chart(levels=(Level(0.8, "ceiling"),)))


def test_an_interval_is_a_band() -> None:
    band = LINE._replace(low=LINE.y - 0.1, high=LINE.y + 0.1)
    assert "opacity: 0.16" in chart(band)
    assert "opacity: 0.16" not in chart()


def test_a_logarithmic_axis_leaves_out_what_it_cannot_show() -> None:
    some = Curve(np.arange(3.0), np.array([0.0, 0.1, 1.0]), "some")
    none = Curve(np.arange(3.0), np.zeros(3), "none")
    assert "none" not in words(chart(some, none, scale=Scale.LOG))


def test_drawing_leaves_the_style_of_others_alone() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    to_inline_svg(Figure(), name="empty", description="")
    chart()
    assert dict(matplotlib.rcParams) == before
