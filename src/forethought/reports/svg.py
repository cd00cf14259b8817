"""A matplotlib figure as SVG that lives inside an HTML page.

Colors become CSS variables, so one drawing serves light and dark pages; text takes the
page's font; identifiers are made unlike those of every other drawing on the page.
"""

import re
from enum import StrEnum
from io import BytesIO

import matplotlib
from matplotlib import style
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from forethought.reports.markup import escape
from forethought.visible import visible


class Ink(StrEnum):
    """Colors to draw with: each is a placeholder for the CSS variable of its name."""

    TEXT = "#0a0b01"
    RULE = "#0a0b02"
    SERIES_1 = "#0a0b03"
    SERIES_2 = "#0a0b04"
    SERIES_3 = "#0a0b05"
    SERIES_4 = "#0a0b06"
    MARK = "#0a0b07"

    @property
    def variable(self) -> str:
        return f"var(--chart-{self.name.lower().replace('_', '-')})"


_DEFINED = re.compile(r'\bid="([^"]+)"')
_REFERENCE = re.compile(r"url\(#([^)]+)\)|xlink:href=\"#([^\"]+)\"")
_FONT_FAMILY = re.compile(r"font-family: [^;\"]+(; )?")
_UNNEEDED = re.compile(
    r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>"
    r"|<defs>\s*<style.*?</style>\s*</defs>",
    re.DOTALL,
)
_OPENING = re.compile(r"<svg[^>]*?viewBox=\"([^\"]+)\"[^>]*>")
_ROTATED_BY_NOTHING = re.compile(r' transform="rotate\(-?0 [^)]*\)"')


def to_inline_svg(figure: Figure, *, name: str, description: str) -> str:
    """The same figure and name always give the same text.

    Args:
        figure: drawn in colors of `Ink`.
        name: unlike that of every other drawing on the page; a valid identifier.
        description: for those who cannot see it.
    """
    FigureCanvasSVG(figure)
    file = BytesIO()
    with style.context("default"), matplotlib.rc_context():
        matplotlib.rcParams.update({"svg.hashsalt": name, "svg.fonttype": "none"})
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    svg = visible(_UNNEEDED.sub("", file.getvalue().decode("utf-8")).strip())
    svg = _with_own_identifiers(svg, name)
    for ink in Ink:
        svg = svg.replace(ink.value, ink.variable)
    svg = _ROTATED_BY_NOTHING.sub("", _FONT_FAMILY.sub("", svg))
    label = f'class="chart" role="img" aria-label="{escape(description)}"'
    svg = _OPENING.sub(lambda match: f'<svg {label} viewBox="{match[1]}">', svg, count=1)
    return re.sub(r"\n\s*", "\n", svg)


def _with_own_identifiers(svg: str, name: str) -> str:
    """Identifiers that something refers to get a prefix; the others go."""
    used = {part for match in _REFERENCE.finditer(svg) for part in match.groups() if part}
    svg = _DEFINED.sub(lambda match: f'id="{name}-{match[1]}"' if match[1] in used else "", svg)
    return _REFERENCE.sub(
        lambda match: f"url(#{name}-{match[1]})" if match[1] else f'href="#{name}-{match[2]}"', svg
    )
