"""Which flags a settings class offers: read from its fields, and turned into settings again."""

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar

from forethought.configs.parts import Inline

T = TypeVar("T")


@dataclass(frozen=True)
class Operand:
    """Marks a field that is typed without a flag: `forethought evaluate RUN`."""

    placeholder: str


@dataclass(frozen=True)
class Placeholder:
    """What help shows for a flag's value."""

    text: str


class NoValue:
    """Marks a flag that is typed without a value."""


Switch = Annotated[bool, NoValue()]
"""A flag without a value; there is no `--no-…`."""


SHORT_NAMES = {
    "-m": "--model",
    "-o": "--output",
    "-e": "--environment.id",
    "-s": "--seed",
    "-c": "--config",
}
"""Short names of flags, for every command that has the flag."""

MOST_SHOWN = 12
"""How many flags `--help` shows; `--help-all` shows all."""

USUAL = (
    "--model",
    "--data",
    "--output",
    "--environment.id",
    "--config",
    "--resume",
    "--policy",
    "--episodes",
    "--seed",
    "--expert-steps",
    "--total-steps",
    "--rollout.num-envs",
    "--epochs",
    "--batch-size",
    "--optimizer.learning-rate",
    "--dry-run",
    "--lora.components",
    "--lora.rank",
    "--compute.precision",
    "--temperature",
    "--max-new-tokens",
    "--constrain-actions",
    "--num-envs",
    "--beta",
    "--json",
    "--threads",
)
"""What `--help` shows of a command with many flags: the first of these that it has."""


class Flag(NamedTuple):
    """One thing that can be typed."""

    name: str
    """`--optimizer.learning-rate`; the placeholder, `RUN`, where it has no dashes."""
    expected: str
    """Its values, in words."""
    is_required: bool


class Field(NamedTuple):
    """Where a flag is declared."""

    flag: Flag
    hint: Any
    """The field's type, without `Annotated`."""
    path: tuple[str, ...]
    """Names of the fields that lead to it: `("settings", "optimizer", "learning_rate")`."""
    dotted: str
    """`optimizer.learning_rate`."""
    placeholder: str | None
    is_operand: bool
    is_switch: bool
    owner: type[Any]
    """The class that has the field."""
    group: type[Any]
    """The class whose name is the flag's prefix."""
    name: str
    default: Any
    """`dataclasses.MISSING` where the flag is required."""


def flags_of(settings: type[Any]) -> Iterator[Flag]:
    """Every flag of a settings class, nested classes included.

    Args:
        settings: a dataclass, or a generic one with its parameter filled in.
    """
    return (field.flag for field in fields_of(settings))


def fields_of(settings: type[Any], default: Any = None) -> Iterator[Field]:
    """Every field that is a flag, nested classes included.

    Args:
        settings: a dataclass, or a generic one with its parameter filled in.
        default: an instance with the defaults; None: those of the class.
    """
    return _fields_in(settings, default, path=(), prefix="", group=None)


def _fields_in(
    settings: type[Any],
    default: Any,
    *,
    path: tuple[str, ...],
    prefix: str,
    group: type[Any] | None,
) -> Iterator[Field]:
    origin: type[Any] = typing.get_origin(settings) or settings
    for declared, hint, notes in _members(settings):
        is_inline = any(isinstance(note, Inline) for note in notes)
        dotted = prefix.removesuffix(".") if is_inline else prefix + declared.name
        value = _default(declared) if default is None else getattr(default, declared.name)
        here = (*path, declared.name)
        if dataclasses.is_dataclass(hint):
            yield from _fields_in(
                typing.cast(type[Any], hint),
                None if value is dataclasses.MISSING else value,
                path=here,
                prefix=f"{dotted}." if dotted else "",
                group=(group or origin) if is_inline else None,
            )
            continue
        operand = next((note for note in notes if isinstance(note, Operand)), None)
        shown = next((note for note in notes if isinstance(note, Placeholder)), None)
        typed = "--" + dotted.replace("_", "-")
        yield Field(
            flag=Flag(
                typed if operand is None else operand.placeholder,
                _in_words(hint),
                _default(declared) is dataclasses.MISSING,
            ),
            hint=hint,
            path=here,
            dotted=dotted,
            placeholder=shown.text
            if operand is None and shown
            else operand and operand.placeholder,
            is_operand=operand is not None,
            is_switch=any(isinstance(note, NoValue) for note in notes),
            owner=origin,
            group=group or origin,
            name=declared.name,
            default=value,
        )


def made_of(kind: type[T], values: Mapping[tuple[str, ...], Any], path: tuple[str, ...] = ()) -> T:
    """Settings with these values.

    Args:
        values: of every field of `fields_of`, by its path.
    """
    members = {
        declared.name: (
            made_of(typing.cast(type[Any], hint), values, (*path, declared.name))
            if dataclasses.is_dataclass(hint)
            else values[(*path, declared.name)]
        )
        for declared, hint, _ in _members(kind)
    }
    return kind(**members)


def _members(
    settings: type[Any],
) -> Iterator[tuple[dataclasses.Field[Any], Any, tuple[Any, ...]]]:
    """The fields of a class with their types, and what `Annotated` adds to these."""
    origin = typing.get_origin(settings) or settings
    parameters = getattr(origin, "__parameters__", ())
    filled_in = dict(zip(parameters, typing.get_args(settings), strict=True))
    hints = typing.get_type_hints(origin, include_extras=True)
    for declared in dataclasses.fields(origin):
        hint, notes = _unwrapped(hints[declared.name])
        yield declared, filled_in.get(hint, hint), notes


def usual(fields: Sequence[Field]) -> list[Field]:
    """The fields that `--help` shows: all of few; otherwise what is required, what `USUAL`
    names, and the command's own flags as they are declared, until there are enough."""
    if len(fields) <= MOST_SHOWN:
        return list(fields)

    def rank(field: Field) -> int:
        if field.flag.is_required:
            return -1
        if field.flag.name in USUAL:
            return USUAL.index(field.flag.name)
        return len(USUAL) + ("." in field.dotted)

    return sorted(fields, key=rank)[:MOST_SHOWN]


def in_full(words: Sequence[str], settings: type[Any]) -> list[str]:
    """What was typed, with the long names of flags for the short ones."""
    known = {flag.name for flag in flags_of(settings)}
    long_names = {short: name for short, name in SHORT_NAMES.items() if name in known}
    parts = [word.partition("=") for word in words]
    return [long_names.get(name, name) + equals + value for name, equals, value in parts]


def _default(field: dataclasses.Field[Any]) -> Any:
    """The default that its class gives a field."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def value_of(words: Sequence[str], flag: str) -> str | None:
    """What was typed for a flag, as `--flag value` or `--flag=value`; the last time counts."""
    found = None
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name.replace("_", "-") != flag:
            continue
        if equals:
            found = value
        elif index + 1 < len(words) and not words[index + 1].startswith("--"):
            found = words[index + 1]
    return found


def _unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without what `Annotated` adds to it, and what that is."""
    if typing.get_origin(hint) is Annotated:
        inner, *notes = typing.get_args(hint)
        return inner, tuple(notes)
    return hint, ()


def _in_words(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return " or ".join(str(choice) for choice in arguments)
    if origin is tuple:
        return f"{_in_words(arguments[0])}, or several"
    if origin in (types.UnionType, typing.Union):
        return _in_words(next(a for a in arguments if a is not type(None)))
    words = {int: "a whole number", float: "a number", bool: "no value", str: "text"}
    return words.get(hint, "a value")
