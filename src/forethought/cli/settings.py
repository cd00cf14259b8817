"""From what was typed to a command's settings; what is wrong with it, in one line."""

import difflib
import inspect
import io
import re
import sys
import typing
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from typing import Any, TypeVar

import tyro

from forethought.cli.flags import Flag, flags_of, in_full, value_of
from forethought.cli.help import HELP, HELP_ALL, print_help, print_whole_help
from forethought.errors import ConfigError

T = TypeVar("T")

_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_TITLE = re.compile(r"^(?:╭─ (.+?) ─*╮| (\S.*?) *\n -{8,}) *$", re.MULTILINE)
"""Of tyro's box; it draws one of minus signs where stdout is not in UTF-8."""
_EDGE = re.compile(r"[│╰╯]")
_RULE = re.compile(r"──+|-{8,}")
_FLAG = re.compile(r"--[\w.-]*\w")

_ELSEWHERE = {
    "lr": "--optimizer.learning-rate",
    "epochs": "--epochs",
    "env": "--environment.id",
    "env-id": "--environment.id",
    "num-envs": "--num-envs",
    "n-envs": "--num-envs",
    "max-tokens": "--max-new-tokens",
    "total-timesteps": "--total-steps",
    "output-dir": "--output",
    "lora-r": "--lora.rank",
    "bf16": "--compute.precision",
    "per-device-train-batch-size": "--batch-size",
}
"""What other frameworks call a flag, and what it is here."""

_LOGGING = ("wandb", "report-to", "tensorboard", "track", "logger")
"""What other frameworks call the choice of a log."""


def settings_type(function: Callable[..., Any]) -> type[Any]:
    """The type of a command's one argument."""
    hints = typing.get_type_hints(function, include_extras=True)
    return next(hint for name, hint in hints.items() if name != "return")


def describe(function: Callable[..., Any]) -> str:
    """A command's help: its docstring."""
    return inspect.getdoc(function) or ""


def read_settings(
    kind: type[T],
    words: Sequence[str],
    *,
    program: str,
    description: str,
    default: T | None = None,
) -> T:
    """Reads the settings; or prints the help that was asked for, and exits.

    Args:
        kind: a frozen dataclass.
        words: what was typed behind the command's name.
        program: the command, for the help.
        default: settings that what was typed changes; by default, those of the class.

    Raises:
        ConfigError: an unknown flag, a value of the wrong kind or out of range, or
            something missing.
        SystemExit: help was printed.
    """
    if HELP_ALL in words:
        print_whole_help(kind, default, program=program, description=description)
        raise SystemExit(0)
    if any(word in HELP for word in words):
        print_help(kind, default, program=program, description=description)
        raise SystemExit(0)
    words = in_full(words, kind)
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            settings, unknown = tyro.cli(
                kind,
                prog=program,
                description="",
                args=words,
                default=tyro.MISSING_NONPROP if default is None else default,
                return_unknown_args=True,
            )
    except SystemExit as end:
        if not end.code:
            raise
        raise ConfigError(_complaint(said.getvalue(), words, kind, program)) from None
    sys.stderr.write(said.getvalue())  # What a library or another thread said meanwhile.
    if unknown:
        raise ConfigError(_unknown(unknown, kind, program))
    return settings


def _unknown(unknown: Sequence[str], kind: type[Any], program: str) -> str:
    """What to say about words that mean nothing here."""
    word = next((word for word in unknown if word.startswith("-")), unknown[0])
    if not word.startswith("-"):
        return f"{word!r} is one word too many — see {program} --help"
    name = word.partition("=")[0]
    if any(name.replace("_", "-").strip("-").startswith(log) for log in _LOGGING):
        return (
            f"unknown flag {name} — every run writes metrics.jsonl and TensorBoard scalars into "
            "its folder: tensorboard --logdir runs"
        )
    known = [flag.name for flag in flags_of(kind) if flag.name.startswith("-")]
    nearest = _nearest(name, known)
    hint = f"did you mean {nearest}?" if nearest else f"see {program} --help"
    return f"unknown flag {name} — {hint}"


def _nearest(name: str, known: Sequence[str]) -> str | None:
    """The flag that was probably meant: misspelled, or without the group that it is in."""
    name = name.replace("_", "-")
    tail = name.lstrip("-")
    meant = _ELSEWHERE.get(tail)
    if meant is not None:
        named = [flag for flag in known if flag == meant or flag.endswith(f".{meant[2:]}")]
        if named:
            return " or ".join(named)
    of_a_group = [flag for flag in known if flag.endswith(f".{tail}")]
    nearest = of_a_group or difflib.get_close_matches(name, known, n=1)
    if not nearest:
        by_tail = {flag.rpartition(".")[2]: flag for flag in known}
        nearest = [by_tail[t] for t in difflib.get_close_matches(tail, by_tail, n=1)]
    return " or ".join(nearest) or None


def _complaint(said: str, words: Sequence[str], kind: type[Any], program: str) -> str:
    """What tyro says in a box, in one line and in terms of what was typed.

    What precedes the box, as a warning or another thread's words, goes on to stderr.
    """
    said = _COLOR.sub("", said)
    box = _TITLE.search(said)
    sys.stderr.write(said[: box.start()] if box else said)
    title = box[1] or box[2] if box else ""
    lines = _EDGE.sub(" ", said[box.end() :]).splitlines() if box else []
    flags = {flag.name: flag for flag in flags_of(kind)}
    missing = _missing(lines, flags) if title == "Required options" else None
    if missing:
        return f"{missing} is missing — see {program} --help"
    end = next((i for i, line in enumerate(lines) if _RULE.search(line)), len(lines))
    sentence = " ".join(" ".join(lines[:end]).split())
    mentioned = _FLAG.search(sentence)
    flag = flags.get(mentioned.group()) if mentioned else None
    if flag is None:
        return sentence or f"cannot be read — see {program} --help"
    value = value_of(words, flag.name)
    if value is None:
        return f"{flag.name} has no value — expected {flag.expected}"
    return f"{flag.name} is {value!r} — expected {flag.expected}"


def _missing(lines: Sequence[str], flags: dict[str, Flag]) -> str | None:
    """The required flags that the lines name first."""
    firsts = {line.split()[0] for line in lines if line.split()}
    missing = [name for name, flag in flags.items() if flag.is_required and name in firsts]
    return " and ".join(missing) or None
