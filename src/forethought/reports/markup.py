"""Pieces of a page: numbers as text, HTML, SVG, images as data URLs."""

import base64
import hashlib
import html
import json
import math
import re
from collections.abc import Sequence
from enum import StrEnum
from io import BytesIO
from pathlib import Path
from string import Template
from typing import NamedTuple

import matplotlib
import PIL.Image
from matplotlib import style
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from forethought.errors import visible
from forethought.evaluation.statistics import Interval
from forethought.types import Image

MISSING = "–"
THIN = "\u202f"
"""A narrow space at which no line is broken, between number and unit."""
_MINUS = "\u2212"


def percent(rate: float | None) -> str:
    """0.8567 as `85.7 %`."""
    return MISSING if rate is None else f"{_percents(rate)}{THIN}%"


def percent_interval(interval: Interval) -> str:
    """Both ends, one unit: `73.9 – 91.9 %`."""
    return f"{_percents(interval.low)} – {_percents(interval.high)}{THIN}%"


def decimal(value: float | None, digits: int = 2) -> str:
    """With a true minus sign."""
    if value is None or not math.isfinite(value):
        return MISSING
    return _signed(f"{value:,.{digits}f}")


def decimal_interval(interval: Interval) -> str:
    """`0.12 to 0.34`."""
    return f"{decimal(interval.low)} to {decimal(interval.high)}"


def count(number: int | None) -> str:
    """12345 as `12,345`."""
    return MISSING if number is None else _signed(f"{number:,}")


def counted(number: int, one: str, several: str) -> str:
    """`1 failure`, `12 failures`."""
    return f"{count(number)} {one if number == 1 else several}"


def short(value: float, digits: int = 3) -> str:
    """So many significant digits, for labels: `0.0123`, `1.2e−6`, `−5.6`."""
    text = f"{value:.{digits}g}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        text = f"{mantissa}e{int(exponent)}"
    return _signed(text)


def share(rate: float, digits: int = 3) -> str:
    """As `short`, in percent: 0.0123 as `1.23 %`."""
    return f"{short(100 * rate, digits)}{THIN}%"


def duration(seconds: float) -> str:
    """`3 h 20 min`, `4 min 31 s`, `9.5 s`."""
    if seconds < 59.95:  # Above, one decimal would read 60.0.
        return f"{seconds:.1f}{THIN}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}{THIN}min {rest}{THIN}s"
    return f"{minutes // 60}{THIN}h {minutes % 60}{THIN}min"


def speed(per_second: float) -> str:
    """Three significant digits, or whole numbers where there are more: `3.5`, `8,224`."""
    return count(round(per_second)) if per_second >= 100 else short(per_second)


def _percents(rate: float) -> str:
    return f"{100 * rate:.1f}"


def _signed(text: str) -> str:
    return text.replace("-", _MINUS)


_IN_SCRIPT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def escape(text: str) -> str:
    """Text for the inside of an element or of a quoted attribute.

    Control characters and half surrogate pairs are shown as `\\x1b` and `\\ud800`.
    """
    return html.escape(visible(text))


def embed_json(value: object) -> str:
    """JSON that may be inside `<script type="application/json">`.

    Pure ASCII, so U+2028 and U+2029 are escaped as well; no `<` that could end the
    script, no `>`, no `&`.

    Raises:
        ValueError: a number is not finite: JSON has none such.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda match: _IN_SCRIPT[match[0]], text)


_ASSETS = Path(__file__).with_name("assets")


def document(*, title: str, body: str, replay_data: str) -> str:
    """The document as text, in the reports' style, with the script that replays episodes.

    Args:
        title: text.
        body: HTML.
        replay_data: JSON that may be inside a script element.
    """
    script = asset("report.js")
    return Template(asset("document.html")).substitute(
        title=escape(title),
        policy=_content_policy(script),
        style=asset("report.css"),
        body=body,
        data=replay_data,
        script=script,
    )


def _content_policy(script: str) -> str:
    """Lets a browser run this one script, show images held in the page, and load nothing."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def asset(name: str) -> str:
    """A file that pages are made of."""
    return (_ASSETS / name).read_text(encoding="utf-8")


class Section(NamedTuple):
    """One part of a page, which the links at its top lead to."""

    id: str
    title: str
    html: str
    """Empty: the page has no such section."""


def sections_html(sections: Sequence[Section]) -> str:
    """The links, and below them the sections that hold anything."""
    present = [section for section in sections if section.html]
    links = "".join(f'<a href="#{section.id}">{escape(section.title)}</a>' for section in present)
    body = "\n".join(
        f'<section id="{section.id}">\n<h2>{escape(section.title)}</h2>\n{section.html}\n</section>'
        for section in present
    )
    return f'<nav aria-label="Sections">{links}</nav>\n<main>\n{body}\n</main>'


class TableRow(NamedTuple):
    """One row, as HTML."""

    title: str
    cells: Sequence[str]
    kind: str = ""
    """CSS class."""


def table(label: str, corner: str, columns: Sequence[str], rows: Sequence[TableRow]) -> str:
    """HTML of a table; on a narrow screen each row is a card, whose lines name their columns.

    Args:
        label: for those who cannot see it.
        corner: above the titles of the rows.
        columns: text.
    """
    heads = "".join(f'<th scope="col">{escape(title)}</th>' for title in (corner, *columns))
    body = "".join(_table_row(row, columns) for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _table_row(row: TableRow, columns: Sequence[str]) -> str:
    cells = "".join(_table_cell(*cell) for cell in zip(columns, row.cells, strict=True))
    kind = f' class="{row.kind}"' if row.kind else ""
    return f'<tr{kind}><th scope="row">{row.title}</th>{cells}</tr>'


def _table_cell(column: str, cell: str) -> str:
    kind = ' class="missing"' if cell == MISSING else ""
    return f'<td{kind} data-column="{escape(column)}"><div>{cell}</div></td>'


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


_LARGE = 48 * 1024
"""Bytes. Drawings are far smaller as PNG; a photograph is not, and hundreds of them would
make a page that no one can send."""
_JPEG_QUALITY = 90


class EmbeddedImage(NamedTuple):
    address: str
    """`data:`, for the `src` of an image."""
    width: int
    """Pixels."""


class ImageTable:
    """Images by number."""

    def __init__(self) -> None:
        self.images: list[EmbeddedImage] = []
        self._number_of: dict[tuple[tuple[int, ...], bytes], int] = {}

    def number(self, image: Image) -> int:
        """Its index in `images`."""
        key = (image.shape, image.tobytes())
        if key not in self._number_of:
            self._number_of[key] = len(self.images)
            self.images.append(embedded(image))
        return self._number_of[key]


def embedded(image: Image) -> EmbeddedImage:
    """Exact, pixel by pixel, unless that takes more than `_LARGE`."""
    drawn = PIL.Image.fromarray(image)
    kind, data = "png", BytesIO()
    drawn.save(data, format="PNG", optimize=True)
    if data.tell() > _LARGE:
        kind, data = "jpeg", BytesIO()
        drawn.save(data, format="JPEG", quality=_JPEG_QUALITY)
    encoded = base64.b64encode(data.getvalue()).decode("ascii")
    return EmbeddedImage(f"data:image/{kind};base64,{encoded}", image.shape[1])


def image_element(image: EmbeddedImage, *, width: int, described: str) -> str:
    """HTML. An image that grows keeps square pixels.

    Args:
        width: on the page, in CSS pixels.
        described: text for those who cannot see it.
    """
    kind = 'class="pixels" ' if image.width < width else ""
    return f'<img {kind}width="{width}" alt="{escape(described)}" src="{image.address}">'
