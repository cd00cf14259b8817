"""Text that is broken at the width of the terminal, not where its source breaks it."""

import re
import shutil
import textwrap

_BEFORE_FLAG = re.compile(r" (?=--?[a-z])")
_CONTINUED = re.compile(r" *\\\n *")


def wrapped(text: str) -> str:
    """Paragraphs at the terminal's width; an indented line is a command, and is broken before
    a flag, as a shell reads it."""
    width = shutil.get_terminal_size().columns
    lines: list[str] = []
    paragraph: list[str] = []
    for line in [*_CONTINUED.sub(" ", text).splitlines(), ""]:
        if line and not line[0].isspace():
            paragraph.append(line)
            continue
        lines += _filled(" ".join(paragraph), width)
        paragraph.clear()
        lines += _command(line, width)
    return "\n".join(lines[:-1])


def row(start: str, text: str) -> str:
    """One line of a table of two columns; the text goes on under itself."""
    width = shutil.get_terminal_size().columns
    return "\n".join(_filled(text, width, start=start, after=" " * len(start))) or start


def _filled(text: str, width: int, *, start: str = "", after: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=start,
        subsequent_indent=after,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _command(line: str, width: int) -> list[str]:
    lines: list[str] = []
    for part in _BEFORE_FLAG.split(line):
        if lines and len(lines[-1]) + len(part) + 3 <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(f"      {part}" if lines else part)
    return [f"{one} \\" for one in lines[:-1]] + lines[-1:]
