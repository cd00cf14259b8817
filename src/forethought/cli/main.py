"""`forethought …`: finds the command, reads its settings, calls it, and tells what went wrong.

Whatever a person can mend is one line on stderr and an exit code that is not 0. A bug of
ours keeps its traceback.
"""

import difflib
import importlib
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from forethought.cli.commands import COMMANDS, EXAMPLES, GROUPS, Command, all_commands
from forethought.cli.failures import explain
from forethought.cli.interrupts import Interrupt, interruptible
from forethought.cli.wrapping import row, wrapped
from forethought.errors import UnknownNameError
from forethought.visible import visible

_HELP = ("-h", "--help", "--help-all", "help")

_OTHER_NAMES = {
    "train reinforce": "train reinforce++",
    "eval": "evaluate",
}
"""Names that the field uses, and the command that does it here."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: what was typed behind `forethought`; by default, what this process was given.

    Returns:
        The exit code.
    """
    if argv is None and str(Path.cwd()) not in sys.path:
        # Worlds of one's own, `package.module:Class`, lie where the command is typed. Last,
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
