"""Why a test is skipped, in one form: what it needs, and the command that would enable it.

`make test` ends with the list of them. A skip in another form fails: nobody could act on it.
"""

import importlib.util
from collections import Counter
from collections.abc import Iterable

import pytest

_RUN = " — run: "
_PREFIX = "Skipped: "


def needs(what: str, command: str) -> str:
    """The reason for a skip.

    Args:
        what: is missing: "Stockfish".
        command: what a person types to have it.
    """
    return f"needs {what}{_RUN}{command}"


with_minigrid = pytest.mark.skipif(
    importlib.util.find_spec("minigrid") is None,
    reason=needs("minigrid", 'pip install "forethought[minigrid]"'),
)
"""Marks a test that plays MiniGrid or BabyAI."""


def fault_of(reason: str) -> str | None:
    """What is wrong with the reason for a skip; None where it is in form."""
    what, _, command = reason.removeprefix(_PREFIX).partition(_RUN)
    if what.startswith("needs ") and command.strip():
        return None
    return f"skipped without a command that would enable it: {reason!r} — use tests.skips.needs"


def lines_of(reasons: Iterable[str]) -> list[str]:
    """One line for each reason: how many tests, what they need, and the command."""
    counts = Counter(reason.removeprefix(_PREFIX) for reason in reasons)
    parted = sorted((*reason.partition(_RUN)[::2], count) for reason, count in counts.items())
    width = max((len(what) for what, _, _ in parted), default=0)
    return [f"{count:5}  {what:{width}}  {command}" for what, command, count in parted]
