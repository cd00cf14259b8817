"""What every page is made of: text that is safe to show, and one HTML document around it.

What a model wrote may be anything, `</script>` included. As HTML it passes through
`escape`, as data for the page's script through `embed_json`. There is no third way in.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple

from forethought.reports.formatting import MISSING
from forethought.visible import visible

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
