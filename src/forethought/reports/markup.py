"""The two doors through which foreign text enters the page. There is no third.

What a model wrote may be anything, `</script>` included. As HTML it passes through
`escape`, as data for the page's script through `embed_json`.
"""

import html
import json
import re

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
