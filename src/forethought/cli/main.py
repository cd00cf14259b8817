"""`forethought …`: finds the command, reads its settings, calls it, and reports errors.

An error that a person can fix is one line on stderr and an exit code that is not 0. A bug of
ours keeps its traceback.
"""

import difflib
import errno
import importlib
import os
import select
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from forethought.cli.commands import COMMANDS, EXAMPLES, GROUPS, Command, all_commands
from forethought.cli.interrupts import Interrupt, interruptible
from forethought.cli.terminal import row, wrapped
from forethought.errors import ForethoughtError, UnknownNameError, visible

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
    """Message and exit code of an error."""

    line: str | None
    """None where no message is printed."""
    exit_code: int


def explain(error: Exception) -> Failure | None:
    """The line for an error that a person can fix; None for a bug, which is to be seen."""
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


_HELP = ("-h", "--help", "--help-all", "help")

_OTHER_NAMES = {
    "train reinforce": "train reinforce++",
    "eval": "evaluate",
}
"""Names that the field uses, and the command that does it here."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: what was typed after `forethought`; by default, what this process was given.

    Returns:
        The exit code.
    """
    if argv is None and str(Path.cwd()) not in sys.path:
        # Environments of one's own, `package.module:Class`, lie where the command is typed. Last,
        # so that no file there stands in for an installed package.
        sys.path.append(str(Path.cwd()))
    if argv is None:
        sys.excepthook = _show_bug
    words = list(sys.argv[1:] if argv is None else argv)
    with interruptible() as interruptions, warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")  # Advice of libraries, to those who develop.
        try:
            code = _dispatch_or_help(words)
            sys.stdout.flush()
            return code
        except Interrupt as interrupt:
            return _report_interrupt(interrupt)
        except Exception as error:
            # In the middle of a library an interruption may come out as another error.
            if interruptions.received is not None:
                return _report_interrupt(interruptions.received)
            failure = explain(error)
            if failure is None:
                raise
            _end_progress_bars(error)
            if failure.line is not None:
                print(failure.line, file=sys.stderr)
            return failure.exit_code


def _dispatch_or_help(words: Sequence[str]) -> int:
    try:
        return _dispatch(words)
    except SystemExit as end:  # Help was asked for, and given.
        return 0 if end.code is None else int(end.code)


def _dispatch(words: Sequence[str]) -> int:
    if not words or words[0] in _HELP:
        print(_overview())
        return 0
    if words[0] == "--version":
        print(_version())
        return 0
    if words[0] in GROUPS and (len(words) == 1 or words[1] in _HELP):
        print(_group_help(words[0]))
        return 0
    command = _find(words)
    rest = words[len(command.name.split()) :]
    return _call(command, rest)


def _call(command: Command, words: Sequence[str]) -> int:
    """Reads the settings that the command's function takes, and calls it."""
    from forethought.cli.flags import in_full
    from forethought.cli.settings import describe, read_settings, settings_type

    function = _load(command.target)
    if command.algorithm is None:
        kind, description = settings_type(function), describe(function)
        defaults_of = None if command.defaults is None else _load(command.defaults)
    else:
        made = function(command.algorithm)
        function, kind, description = made.run, made.kind, made.description
        defaults_of = made.defaults
    words = in_full(words, kind)
    defaults = None if defaults_of is None else defaults_of(words)
    settings = read_settings(
        kind,
        words,
        program=f"forethought {command.name}",
        description=description,
        default=defaults,
    )
    code = function(settings)
    return code if isinstance(code, int) else 0


def _load(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def _find(words: Sequence[str]) -> Command:
    """The command that is meant.

    Raises:
        UnknownNameError: there is none of this name; the message names the nearest.
    """
    count = 2 if words[0] in GROUPS else 1
    name = " ".join(words[:count])
    for command in COMMANDS:
        if command.name == name:
            return command
    commands = all_commands()
    for command in commands:
        if command.name == name:
            return command
    known = [command.name for command in commands]
    if (meant := _OTHER_NAMES.get(name) or _OTHER_NAMES.get(f"train {name}")) is None:
        meant = f"train {name}" if f"train {name}" in known else None
    if meant is not None:
        raise UnknownNameError(f"unknown command {name!r} — did you mean `forethought {meant}`?")
    nearest = difflib.get_close_matches(name, known, n=1)
    if not nearest and count == 1:
        nearest = [other for other in known if words[0] in other.split()]
    hint = (
        f"did you mean {' or '.join(f'`forethought {other}`' for other in nearest)}?"
        if nearest
        else f"known: {', '.join(other for other in known if count == 1 or words[0] in other)}"
    )
    raise UnknownNameError(f"unknown command {name!r} — {hint}")


def _overview() -> str:
    commands = all_commands()
    width = max(len(command.name) for command in commands)
    rows = [row(f"  {command.name:{width}}  ", command.summary) for command in commands]
    return "\n".join(
        [
            wrapped("Forethought trains vision-language and language models to act."),
            "",
            wrapped("Commands (each explains itself: `forethought COMMAND --help`):"),
            *rows,
            "",
            "Examples:",
            *(wrapped(f"  {example}") for example in EXAMPLES),
        ]
    )


def _group_help(group: str) -> str:
    rows = [
        row(f"  forethought {command.name}  ", command.summary)
        for command in all_commands()
        if command.name.startswith(f"{group} ")
    ]
    examples = [wrapped(f"  {example}") for example in EXAMPLES if f" {group} " in example]
    return "\n".join([wrapped(GROUPS[group]), "", *rows, "", "Examples:", *examples])


def _version() -> str:
    from importlib.metadata import version

    return f"forethought {version('forethought')}"


def _show_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A traceback, in which a stranger's text (an environment's exception) does nothing."""
    lines = traceback.format_exception(kind, error, trace)
    print(visible("".join(lines)), end="", file=sys.stderr)


def _report_interrupt(interrupt: Interrupt) -> int:
    _end_progress_bars(interrupt)
    way_on = f"; {interrupt.way_on}" if interrupt.way_on else ""
    if sys.stderr.isatty():
        print(file=sys.stderr)  # Behind the terminal's own ^C, or a progress bar.
    print(f"interrupted{way_on}", file=sys.stderr)
    return interrupt.exit_code


def _end_progress_bars(error: BaseException | None) -> None:
    """Lets go of the frames that raised an error, and with them of their progress bars: these
    end their line when they go, which would else come after ours."""
    while error is not None:
        error.with_traceback(None)  # Not by assignment: tyro has errors that are frozen.
        error = error.__cause__ or error.__context__
