"""An observation of Gymnasium's in words, and what keeps it from being put into words."""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
from gymnasium import spaces

from forethought.environments.gym.calling import brief

MOST_NUMBERS = 64
"""A `Box` of more is an image, or nothing that a prompt should hold."""

Parts = spaces.Dict | spaces.Tuple[Any]
NUMBERS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


def in_words(space: spaces.Space[Any], value: Any) -> str:
    """Text as it is, numbers with blanks between them, one line for each part of a Dict or Tuple;
    nothing of a space that has no words. The mission is left out: it is the goal.

    Args:
        value: one that `observation_problem` finds nothing wrong with.
    """
    if isinstance(space, spaces.Dict):
        parts = ((name, part) for name, part in space.spaces.items() if name != "mission")
        return "\n".join(f"{name}: {in_words(part, value[name])}" for name, part in parts)
    if isinstance(space, spaces.Tuple):
        return "\n".join(in_words(s, v) for s, v in zip(space.spaces, value, strict=True))
    if isinstance(space, spaces.Text):
        return value
    if isinstance(space, NUMBERS):
        return " ".join(f"{number:.4g}" for number in np.ravel(np.asarray(value, float)).tolist())
    return ""


def can_be_said(space: spaces.Space[Any]) -> bool:
    """Whether `in_words` makes a text of what the space holds."""
    if isinstance(space, spaces.Dict):
        return all(can_be_said(s) for name, s in space.spaces.items() if name != "mission")
    if isinstance(space, spaces.Tuple):
        return all(can_be_said(part) for part in space.spaces)
    if isinstance(space, NUMBERS):
        return prod(space.shape or ()) <= MOST_NUMBERS
    return isinstance(space, spaces.Text)


def observation_problem(
    space: spaces.Space[Any], value: Any, name: str = "the observation"
) -> str | None:
    """What is wrong with an observation, as one clause; None where it can be put into words.

    Values outside the bounds of a space pass: they are words like any others.
    """
    if isinstance(space, spaces.Dict | spaces.Tuple):
        problem = _parts_problem(space, value, name)
        if problem is not None:
            return problem
        problems = (observation_problem(*part) for part in _parts(space, value, name))
        return next((problem for problem in problems if problem is not None), None)
    if isinstance(space, spaces.Text) and not isinstance(value, str):
        return f"{name} is {brief(value)} — expected a text"
    if isinstance(space, NUMBERS):
        return _numbers_problem(space, value, name)
    return None


def _parts(space: Parts, value: Any, name: str) -> Iterator[tuple[spaces.Space[Any], Any, str]]:
    named = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
    for key, part in named:
        yield part, value[key], f"{name}[{key!r}]"


def _parts_problem(space: Parts, value: Any, name: str) -> str | None:
    if isinstance(space, spaces.Tuple):
        count = len(space.spaces)
        if isinstance(value, tuple | list) and len(value) == count:
            return None
        return f"{name} is {brief(value)} — expected a tuple of {count}"
    keys = ", ".join(space.spaces)
    if not isinstance(value, Mapping):
        return f"{name} is {brief(value)} — expected a dict of {keys}"
    missing = [key for key in space.spaces if key not in value]
    return f"{name} has no {missing[0]!r} — expected {keys}" if missing else None


def _numbers_problem(space: spaces.Space[Any], value: Any, name: str) -> str | None:
    try:
        numbers = np.asarray(value)
    except Exception:  # A ragged list, or an object with code of its own.
        numbers = np.array(None)
    count = prod(space.shape or ())
    if numbers.dtype.kind not in "biuf" or numbers.size != count:
        return f"{name} is {brief(value)} — expected {brief(space)}"
    if numbers.dtype.kind == "f" and np.isnan(numbers).any():
        return f"{name} is {brief(value)} — expected no NaN"
    return None
