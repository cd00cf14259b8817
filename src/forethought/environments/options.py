"""How a world's settings are described, and refused when they are wrong."""

from dataclasses import dataclass
from typing import Any

from forethought.errors import ConfigError


@dataclass(frozen=True)
class Option:
    """One keyword argument of a world's constructor, for listings and for refusals."""

    name: str
    default: Any
    allowed: str
    """The values it may have, in words."""
    meaning: str


def require_option(condition: bool, name: str, value: object, allowed: str) -> None:
    """Refuses a setting, naming it, its value and what it may be.

    Raises:
        ConfigError: `condition` does not hold.
    """
    if not condition:
        raise ConfigError(f"{name} is {value!r} — expected {allowed}")


def is_whole_number(value: object, low: int, high: int) -> bool:
    """Whether `value` is an int (True and False are not) in [low, high]."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def is_flag(value: object) -> bool:
    """Whether `value` is True or False, and not something that passes for it."""
    return isinstance(value, bool)
