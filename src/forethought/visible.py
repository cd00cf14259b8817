"""Text of strangers, such that a terminal or a page shows it and obeys nothing in it."""

import re

_OBEYED = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters (C0, DEL, C1), which terminals obey
    "\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"  # unseen; turn what follows
    "\ud800-\udfff"  # half surrogate pairs, which cannot be written
    "]"
)
"""As in the page of a report (report.js). Joiners stay: scripts and emoji are spelt with them."""


def visible(text: str) -> str:
    """The text with such characters as Python writes them: "\\x1b[31m", "\\u202e".

    Line ends and tabs stay.
    """
    return _OBEYED.sub(_escaped, text.replace("\r\n", "\n"))


def _escaped(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
