"""Whether a response has exactly the form that was asked for."""

import json
from typing import Any

from forethought.environments.wording import Prompter, WithResponseFields


def response_fields(prompter: Prompter) -> tuple[str, ...]:
    """The JSON fields that a prompter asks for, in order; empty where it asks for no JSON."""
    return prompter.response_fields if isinstance(prompter, WithResponseFields) else ()


def asks_for_thoughts(fields: tuple[str, ...]) -> bool:
    """Whether a response with these fields says more than its action."""
    return len(fields) > 1


def strict_format(response: str, fields: tuple[str, ...]) -> bool | None:
    """Whether a response is one JSON object with exactly these fields, in this order, whose
    action is a text. Nothing but blanks may surround it. Total: any text has an answer.

    Returns:
        None where no fields are asked for.
    """
    if not fields:
        return None
    try:
        read: Any = json.loads(response, object_pairs_hook=_Object, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    if not isinstance(read, _Object):
        return False
    names = tuple(name for name, _ in read)
    return names == fields and isinstance(read[-1][1], str)


class _Object(tuple[tuple[str, Any], ...]):
    """A JSON object with its fields as they are written, repetitions included."""


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
