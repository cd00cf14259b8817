"""What every page is made of: text that is safe to show, and one HTML document around it.

What a model wrote may be anything, `</script>` included. As HTML it passes through
`escape`, as data for the page's script through `embed_json`. There is no third way in.
"""

import html
import json
import re
from pathlib import Path
from string import Template

from forethought.visible import visible

_IN_SCRIPT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def escape(text: str) -> str:
    """Text for the inside of an element or of a quoted attribute.

    Control characters and half surrogate pairs are shown as `\\x1b` and `\\ud800`.
    """
    return html.escape(visible(text))


def embed_json(value: object) -> str:
    """JSON that may stand inside `<script type="application/json">`.

    Pure ASCII, so U+2028 and U+2029 are escaped as well; no `<` that could end the
    script, no `>`, no `&`.

    Raises:
        ValueError: a number is not finite: JSON has none such.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda match: _IN_SCRIPT[match[0]], text)


_ASSETS = Path(__file__).with_name("assets")


def document(*, title: str, policy: str, body: str) -> str:
    """The document as text, in the reports' style.

    Args:
        title: text.
        policy: what a browser may run and load (Content-Security-Policy).
        body: HTML.
    """
    return Template(asset("document.html")).substitute(
        title=escape(title), policy=policy, style=asset("report.css"), body=body
    )


def asset(name: str) -> str:
    """A file that pages are made of."""
    return (_ASSETS / name).read_text(encoding="utf-8")
