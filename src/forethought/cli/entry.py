"""Where a command begins: from here on Ctrl-C ends it with one word instead of a traceback.

Everything else is imported later, since that takes longer than a finger: what is interrupted
meanwhile has not begun. A shell that starts a background job has SIGINT ignored, and Python then
leaves it so; a command answers it all the same.

`_signal` is what `signal` consists of, less the enumerations that take longest of all to load.
"""

import _signal  # pyright: ignore[reportMissingImports]
import os


def main() -> int:
    """Runs what was typed; the exit code."""
    for number in (_signal.SIGINT, _signal.SIGTERM):
        _signal.signal(number, _leave)
    from forethought.cli.main import main as run

    return run()


def _leave(number: int, frame: object) -> None:
    """Before the command has begun, and after its end."""
    os.write(2, b"\ninterrupted\n" if os.isatty(2) else b"interrupted\n")
    os._exit(128 + number)
