"""Keeps a figure and its interval on one line of a table's cell: 76.6 [72.7, 80.1].

The pages have plain blanks, so that a figure can be searched for; the site has fixed ones.
"""

import re

from sphinx.application import Sphinx

_INTERVAL = re.compile(r"(?<=[\d*%]) \[([−\d.,]+), ([−\d.,]+)\]")


def fixed(line: str) -> str:
    return _INTERVAL.sub("\u00a0[\\1,\u00a0\\2]", line) if line.startswith("|") else line


def _read(_: Sphinx, __: str, source: list[str]) -> None:
    source[0] = "\n".join(map(fixed, source[0].split("\n")))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
