"""Which flags a settings class offers, read from its fields as tyro reads them."""

import dataclasses
import types
import typing
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import tyro

Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff]
"""A flag without a value; there is no `--no-…`."""

# What tyro attaches to `arg(...)` and to `Positional[...]` has no public type.
_ARGUMENT = "_ArgConfig"
_POSITIONAL = "POSITIONAL"


class Flag(NamedTuple):
    """One thing that can be typed."""

    name: str
    """`--optimizer.learning-rate`; the placeholder, `RUN`, where it has no dashes."""
    expected: str
    """Its values, in words."""
    is_required: bool


def flags_of(settings: type[Any], prefix: str = "") -> Iterator[Flag]:
    """Every flag of a settings class, nested classes included.

    Args:
        settings: a dataclass, or a generic one with its parameter filled in.
        prefix: of nested fields: `optimizer.`.
    """
    origin = typing.get_origin(settings) or settings
    parameters = getattr(origin, "__parameters__", ())
    filled_in = dict(zip(parameters, typing.get_args(settings), strict=True))
    hints = typing.get_type_hints(origin, include_extras=True)
    for field in dataclasses.fields(origin):
        hint, notes = _unwrapped(hints[field.name])
        hint = filled_in.get(hint, hint)
        options = next((note for note in notes if type(note).__name__ == _ARGUMENT), None)
        name = getattr(options, "name", None)
        dotted = prefix + (field.name if name is None else name)
        if dataclasses.is_dataclass(hint):
            yield from flags_of(typing.cast(type[Any], hint), f"{dotted}." if dotted else "")
            continue
        is_required = (
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        )
        is_positional = any(_POSITIONAL in repr(note).upper() for note in notes)
        metavar = getattr(options, "metavar", None)
        shown = (metavar or dotted.upper()) if is_positional else "--" + dotted.replace("_", "-")
        yield Flag(shown, _in_words(hint), is_required)


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
