"""From what was typed to a command's settings or its help; what is wrong with it, in one line.

tyro reads values and prints help. It reports a wrong value in a box on stderr; the hook
that would give it as an object is private (`tyro._errors`). So a command whose flags cannot be read
is read again flag by flag: what cannot be read alone is to blame.
"""

import dataclasses
import difflib
import inspect
import io
import sys
import typing
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import Annotated, Any, TypeVar

import docstring_parser
import tyro

from forethought.cli.flags import (
    SHORT_NAMES,
    Field,
    fields_of,
    flags_of,
    in_full,
    made_of,
    usual,
    value_of,
)
from forethought.cli.terminal import wrapped, wrapped_usage
from forethought.errors import ConfigError

HELP = ("-h", "--help")
HELP_ALL = "--help-all"
T = TypeVar("T")

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


def print_help(kind: type[Any], default: Any, *, program: str, description: str) -> None:
    """Prints a command's description and its usual flags."""
    fields = list(fields_of(kind, default))
    shown = usual(fields)
    print(f"{wrapped(description)}\n")
    _print_flags(_flat(shown), program)
    if len(shown) < len(fields):
        print(f"{len(fields) - len(shown)} more: {program} {HELP_ALL}")


def print_whole_help(kind: type[Any], default: Any, *, program: str, description: str) -> None:
    """Prints a command's description, all its flags by their groups, and their short names."""
    print(f"{wrapped(description)}\n")
    fields = list(fields_of(kind, default))
    _print_flags(_grouped(fields), program)
    known = {field.flag.name for field in fields}
    short = [f"{short} {name}" for short, name in SHORT_NAMES.items() if name in known]
    if short:
        print(wrapped(f"Short names: {', '.join(short)}"))


def _print_flags(flags: type[Any], program: str) -> None:
    """Prints tyro's help, whose first line it would not break."""
    said = io.TextIOWrapper(io.BytesIO(), sys.stdout.encoding)  # Which decides the boxes' lines.
    said.isatty = sys.stdout.isatty  # This, the colors.
    with redirect_stdout(said), suppress(SystemExit):
        tyro.cli(flags, prog=program, description="", args=["--help"])
    said.seek(0)
    usage, _, rest = said.read().partition("\n")
    print(wrapped_usage(usage), rest, sep="\n", end="")


def _flat(fields: Iterable[Field], *, may_lack: bool = False) -> type[Any]:
    """A class for tyro of these flags, the number of each as its field's name.

    Args:
        may_lack: what is required is None where it was not typed.
    """
    made = [_member(f"flag_{n}", field, field.dotted, may_lack) for n, field in enumerate(fields)]
    return dataclasses.make_dataclass("Flags", made, kw_only=True)


def _grouped(fields: Sequence[Field]) -> type[Any]:
    """A class for tyro of these flags, those with a common prefix in a class of their own."""
    members: list[Any] = []
    groups: dict[str, list[Field]] = {}
    for number, field in enumerate(fields):
        prefix, _, name = field.dotted.rpartition(".")
        if prefix:
            groups.setdefault(prefix, []).append(field)
        else:
            members.append(_member(f"flag_{number}", field, name))
    for number, (prefix, inner) in enumerate(groups.items()):
        own = [_member(f"flag_{n}", f, f.dotted.rpartition(".")[2]) for n, f in enumerate(inner)]
        group = dataclasses.make_dataclass("Group", own, kw_only=True)
        group.__doc__ = _joined(inspect.getdoc(inner[0].group))
        hint = Annotated[group, tyro.conf.arg(name=prefix)]
        members.append((f"group_{number}", hint, dataclasses.field(default_factory=group)))
    return dataclasses.make_dataclass("Flags", members, kw_only=True)


def _member(attribute: str, field: Field, name: str, may_lack: bool = False) -> Any:
    """A field of a class for tyro."""
    short = {name: short for short, name in SHORT_NAMES.items()}
    argument = tyro.conf.arg(
        name=name,
        metavar=field.placeholder,
        help=_description(field),
        aliases=[short[field.flag.name]] if field.flag.name in short else None,
    )
    lacks = may_lack and field.default is dataclasses.MISSING
    hint: Any = Annotated[field.hint | None if lacks else field.hint, argument]
    if field.is_operand:
        hint = tyro.conf.Positional[hint]
    if field.is_switch:
        hint = tyro.conf.FlagCreatePairsOff[hint]
    return attribute, hint, dataclasses.field(default=None if lacks else field.default)


def _description(field: Field) -> str | None:
    """The docstring of a field, from the class that declares it. Its paragraphs are joined: the
    terminal's width breaks their lines, not the source's."""
    for owner in field.owner.__mro__:
        if field.name in vars(owner).get("__annotations__", {}):
            parameters = docstring_parser.parse_from_object(owner).params
            found = (p.description for p in parameters if p.arg_name == field.name)
            return _joined(next(found, None))
    return None


def _joined(text: str | None) -> str:
    return "\n\n".join(" ".join(p.split()) for p in (text or "").split("\n\n"))


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
        words: what was typed after the command's name.
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
    fields = list(fields_of(kind, default))
    read = _parsed(fields, words)
    if read is None:
        raise ConfigError(_complaint(fields, words, program))
    values, unknown = read
    if unknown:
        raise ConfigError(_unknown(unknown, kind, program))
    lacking = [f.flag.name for f, value in zip(fields, values, strict=True) if _lacks(f, value)]
    if lacking:
        raise ConfigError(f"{' and '.join(lacking)} is missing — see {program} --help")
    return made_of(kind, dict(zip((field.path for field in fields), values, strict=True)))


def _parsed(fields: Sequence[Field], words: Sequence[str]) -> tuple[list[Any], list[str]] | None:
    """The value of each field, and the words that mean nothing; None where tyro refuses them.

    What else is said on stderr meanwhile, by a library or another thread, goes on to it.
    """
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            read, unknown = tyro.cli(
                _flat(fields, may_lack=True),
                description="",
                args=words,
                return_unknown_args=True,
                console_outputs=False,
            )
    except SystemExit:
        return None
    sys.stderr.write(said.getvalue())
    return [getattr(read, f"flag_{number}") for number in range(len(fields))], unknown


def _lacks(field: Field, value: Any) -> bool:
    return value is None and field.default is dataclasses.MISSING


def _complaint(fields: Sequence[Field], words: Sequence[str], program: str) -> str:
    """Which of the words cannot be read: the first flag whose words are refused without the
    others."""
    for field in fields:
        if field.is_operand:
            continue
        for start, word in enumerate(words):
            if word.partition("=")[0].replace("_", "-") != field.flag.name:
                continue
            after = range(start + 1, len(words))
            stop = next((n for n in after if words[n].startswith("--")), len(words))
            if _parsed([field], words[start:stop]) is None:
                value = value_of(words[start:stop], field.flag.name)
                told = "has no value" if value is None else f"is {value!r}"
                return f"{field.flag.name} {told} — expected {field.flag.expected}"
    for field in fields:
        if field.is_operand:
            return f"{field.flag.name} cannot be read — expected {field.flag.expected}"
    return f"cannot be read — see {program} --help"


def _unknown(unknown: Sequence[str], kind: type[Any], program: str) -> str:
    """What to say about words that mean nothing here."""
    word = next((word for word in unknown if word.startswith("-")), unknown[0])
    if not word.startswith("-"):
        return f"{word!r} is one word too many — see {program} --help"
    name = word.partition("=")[0]
    if any(name.replace("_", "-").strip("-").startswith(log) for log in _LOGGING):
        return (
            f"unknown flag {name} — every run writes metrics.jsonl and TensorBoard scalars into "
            "its folder; `forethought train … --log wandb` sends them to W&B as well"
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
