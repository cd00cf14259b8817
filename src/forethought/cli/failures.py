"""What went wrong, in one line; or nothing, where it is a bug of ours."""

import errno
import os
import select
import sys
from typing import NamedTuple

from forethought.errors import ForethoughtError
from forethought.visible import visible

_MENDABLE = {
    errno.ENOSPC: "make room, or use another disk",
    errno.EDQUOT: "make room, or use another disk",
    errno.EIO: "the disk may be failing: use another",
    errno.EFBIG: "raise the limit of file sizes, or use another disk",
    errno.EROFS: "use another folder",
    errno.EACCES: "use another folder, or change its permissions",
    errno.EPERM: "use another folder, or change its permissions",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}
"""What a file system may refuse, and what a person can do about it."""

_OUT_OF_MEMORY = ("OutOfMemoryError", "MemoryError")
_CPU_OUT_OF_MEMORY = "DefaultCPUAllocator"

CLOSED_PIPE = 128 + 13
"""As shells count a reader that went away (SIGPIPE)."""


class Failure(NamedTuple):
    """What is told, and how the process ends."""

    line: str | None
    """None where there is nobody to tell."""
    exit_code: int


def explain(error: Exception) -> Failure | None:
    """The line for an error that a person can mend; None for a bug, which is to be seen."""
    if isinstance(error, ForethoughtError):
        return _failure(str(error), error.exit_code)
    if isinstance(error, BrokenPipeError) and _stdout_is_closed():
        return Failure(None, CLOSED_PIPE)
    if isinstance(error, OSError) and error.errno in _MENDABLE:
        _drop_what_cannot_be_written()
        what = f"{error.filename}: " if error.filename else ""
        return _failure(f"{what}{error.strerror} — {_MENDABLE[error.errno]}")
    if type(error).__name__ in _OUT_OF_MEMORY or _CPU_OUT_OF_MEMORY in str(error):
        return _failure(
            "out of memory — lower --compute.micro-batch-tokens or the number of slots; "
            "`--dry-run` estimates what training needs"
        )
    return None


def _failure(message: str, exit_code: int = ForethoughtError.exit_code) -> Failure:
    return Failure(f"error: {visible(' '.join(message.split()))}", exit_code)


def _stdout_is_closed() -> bool:
    """Whether what is printed has no reader any more; if so, the rest of it is dropped."""
    try:
        descriptor = sys.stdout.fileno()
    except OSError:  # Something in memory stands for it.
        return False
    pipe = select.poll()
    pipe.register(descriptor, 0)
    if not any(event & select.POLLERR for _, event in pipe.poll(0)):
        return False
    _drop_what_is_left(descriptor)
    return True


def _drop_what_cannot_be_written() -> None:
    """Where it is stdout that has no room, the rest of what was printed is dropped."""
    try:
        sys.stdout.flush()
    except OSError:
        _drop_what_is_left(sys.stdout.fileno())


def _drop_what_is_left(descriptor: int) -> None:
    """The interpreter flushes once more when it ends, and would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
