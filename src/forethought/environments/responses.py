"""Reading what a response claims before its action. Total: any text can be read."""

import json
import re

_ACTION_KEY = re.compile(r'"action"\s*:')
_END_OF_THINKING = "</think>"
_TEXT = r'"(?:[^"\\]|\\.)*"'
_VALUE = rf"({_TEXT}|\[[^\[\]]*\]|-?\d+)"


def read_field(response: str, name: str) -> str | None:
    """The value of a JSON field that precedes the first action: a text unquoted, a number or a
    list as it is written. What precedes the end of a thinking block is passed over, as it may
    quote the form. The last such field counts, as in JSON, also where the response is none.

    Returns:
        None where there is no such field, or its value is of another kind.
    """
    said = response[max(response.rfind(_END_OF_THINKING), 0) :]
    key = _ACTION_KEY.search(said)
    before = said[: key.start()] if key else said
    found = re.findall(rf'"{re.escape(name)}"\s*:\s*{_VALUE}', before, re.DOTALL)
    return _unquoted(found[-1]) if found else None


def last_match(pattern: str, text: str | None) -> str | None:
    """What the pattern's one group holds at its last place in a text; None: nowhere."""
    found: list[str] = re.findall(pattern, text or "")
    return found[-1] if found else None


def concluded(pattern: str, thoughts: str | None) -> tuple[str, ...]:
    """The action that a pattern finds last in thoughts, as `ThoughtFacts` has it."""
    action = last_match(pattern, thoughts)
    return () if action is None else (action,)


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    try:
        return str(json.loads(value, strict=False))
    except ValueError:
        return value[1:-1]
