"""Where Stockfish is on this machine. Needs neither the engine nor the `chess` package."""

import os
import shutil

from forethought.errors import MissingDependencyError

PROGRAM = "stockfish"
PACKAGE = "apt-get install stockfish"
"""On Debian and Ubuntu; what `forethought doctor` says, too."""
VARIABLE = "FORETHOUGHT_STOCKFISH"
"""Names another program in the environment; empty, there is none."""
_ELSEWHERE = ("/usr/games", "/usr/local/bin", "/opt/homebrew/bin")
"""Debian puts games into the first, which many shells do not search."""


def find_stockfish(name: str = PROGRAM) -> str | None:
    """The program of this name or path, or None where there is none."""
    if name == PROGRAM:
        name = os.environ.get(VARIABLE, PROGRAM)
    places = os.pathsep.join((os.environ.get("PATH", os.defpath), *_ELSEWHERE))
    return shutil.which(name, path=places) if name else None


def require_stockfish(name: str = PROGRAM) -> str:
    """The program's path.

    Raises:
        MissingDependencyError: it is not there; the message says how to get it.
    """
    path = find_stockfish(name)
    if path is None:
        raise MissingDependencyError(
            f"Chess needs the program {name!r}, not found — run: {PACKAGE} (or play the weaker "
            "built-in opponent: opponent=builtin)"
        )
    return path
