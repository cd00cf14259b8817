"""The help of a command: its description, and its usual flags or all."""

import dataclasses
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import docstring_parser
import tyro

from forethought.cli.flags import SHORT_NAMES, Field, fields_of, flags_of, usual
from forethought.cli.wrapping import wrapped

HELP = ("-h", "--help")
HELP_ALL = "--help-all"


def print_help(kind: type[Any], default: Any, *, program: str, description: str) -> None:
    """Prints a command's description and its usual flags."""
    fields = list(fields_of(kind, default))
    shown = usual(fields)
    print(f"{wrapped(description)}\n")
    with paragraphs_joined(), suppress(SystemExit):
        tyro.cli(_made_of(shown), prog=program, description="", args=["--help"])
    if len(shown) < len(fields):
        print(f"{len(fields) - len(shown)} more: {program} {HELP_ALL}")


def print_whole_help(kind: type[Any], default: Any, *, program: str, description: str) -> None:
    """Prints a command's description, all its flags, and their short names."""
    print(f"{wrapped(description)}\n")
    given = tyro.MISSING_NONPROP if default is None else default
    with paragraphs_joined(), suppress(SystemExit):
        tyro.cli(kind, prog=program, description="", args=["--help"], default=given)
    known = {flag.name for flag in flags_of(kind)}
    short = [f"{short} {name}" for short, name in SHORT_NAMES.items() if name in known]
    if short:
        print(wrapped(f"Short names: {', '.join(short)}"))


def _made_of(fields: list[Field]) -> type[Any]:
    """A settings class of these flags alone."""
    short = {name: short for short, name in SHORT_NAMES.items()}
    made: list[Any] = []
    for number, field in enumerate(fields):
        argument = tyro.conf.arg(
            name=field.dotted,
            metavar=field.metavar,
            help=_description(field),
            aliases=[short[field.flag.name]] if field.flag.name in short else None,
        )
        hint = Annotated[(field.hint, *field.notes, argument)]
        made.append((f"flag_{number}", hint, dataclasses.field(default=field.default)))
    return dataclasses.make_dataclass("Usual", made, kw_only=True)


def _description(field: Field) -> str | None:
    """The docstring of a field, from the class that declares it."""
    name = field.declared.name
    for owner in field.owner.__mro__:
        if name in vars(owner).get("__annotations__", {}):
            parameters = docstring_parser.parse_from_object(owner).params
            found = (p.description for p in parameters if p.arg_name == name)
            return _joined(next(found, None))
    return None


def _joined(text: str | None) -> str:
    return "\n\n".join(" ".join(p.split()) for p in (text or "").split("\n\n"))


@contextmanager
def paragraphs_joined() -> Generator[None]:
    """Field docstrings as paragraphs: the terminal's width breaks their lines, not the source's.

    tyro keeps a break before an indented line, and the parser that it asks keeps the
    source's indentation.
    """
    parse = docstring_parser.parse_from_object

    def parse_joined(obj: object) -> docstring_parser.Docstring:
        parsed = parse(obj)  # pyright: ignore[reportArgumentType]
        for parameter in parsed.params:
            parameter.description = _joined(parameter.description)
        return parsed

    docstring_parser.parse_from_object = parse_joined
    try:
        yield
    finally:
        docstring_parser.parse_from_object = parse
