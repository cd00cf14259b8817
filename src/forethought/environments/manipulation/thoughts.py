"""What thoughts say of the scene, in the words of the script, and whether it is so."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from forethought.environments.manipulation.simulator import HIGHEST, LOWEST, Vector
from forethought.environments.parts import last_match, read_field
from forethought.types import Claim, ThoughtFacts

COARSE = 12
"""Bins of the workspace to which thoughts round a place, at most 2 cm: what fingers need, and what
a small model learns to see."""

WITHIN = 0.02
"""How far a claimed place may be from the true one, meters, in each direction: the fingers, open,
still close around the object."""

_REACH = "reach for "
_REASON = re.compile(_REACH + r"(?:b[0-9]{3}){3}\. (.+)")
_ACTION = r'"action"\s*:\s*"((?:b[0-9]{3}){8})"'
_LARGEST = 255
_MIDDLE = (127, 128)
"""Bins of no shift."""


class Seen(NamedTuple):
    """An object on the table; no other one has its color."""

    color: str
    at: Vector
    """Meters [3]."""


def write_thought(seen: Sequence[Seen], reason: str) -> str:
    """Where the objects are, from left to right as the camera sees them, and whether it is the one
    that is asked for; the place to reach for, and why the next action is taken.

    A small model learns this sooner than the place alone (lab note 2026-11-25_robot_camera).

    Args:
        seen: all objects, the one that is asked for first.
        reason: the script's.
    """
    across = sorted(seen, key=lambda one: one.at[0], reverse=True)
    scene = ", ".join(_introduction(one, seen) + _place(one.at[:2]) for one in across)
    return f"I see {scene}. {_REACH}{_place(seen[0].at)}. {reason}"


def manipulation_facts(response: str, *, seen: Sequence[Seen], reason: str) -> ThoughtFacts:
    """Where the objects are, and why the next action is taken.

    Args:
        response: the agent's.
        seen: all objects, the one that is asked for first.
        reason: the script's, in the present state.
    """
    thoughts = read_field(response, "thoughts") or ""
    found = _REASON.search(thoughts)
    return ThoughtFacts(
        perceived=(
            *(
                _claim(f"place of {one.color}", thoughts, _introduction(one, seen), one.at[:2])
                for one in seen
            ),
            _claim("place to reach for", thoughts, _REACH, seen[0].at),
        ),
        inferred=(Claim("reason", None if found is None else found[1], reason),),
        concluded_actions=tuple(_carried_out(response, "" if found is None else found[1])),
    )


def _introduction(one: Seen, seen: Sequence[Seen]) -> str:
    """The words before an object's place: its color, and whether it is the one asked for."""
    return f"{one.color} {'yes' if one is seen[0] else 'no'} "


def _claim(name: str, thoughts: str, before: str, at: Vector) -> Claim:
    """What is said behind these words of a place along the axes that `at` has."""
    said = last_match(re.escape(before) + f"((?:b[0-9]{{3}}){{{len(at)}}})[.,]", thoughts)
    return Claim(name, said, said if said is not None and _is_near(said, at) else _place(at))


def _place(at: Vector) -> str:
    low, high = LOWEST[: len(at)], HIGHEST[: len(at)]
    share = (np.clip(at, low, high) - low) / (high - low)
    return "".join(f"b{COARSE * round(number * _LARGEST / COARSE):03d}" for number in share)


def _is_near(said: str, at: Vector) -> bool:
    bins, low, high = np.array(_bins(said)), LOWEST[: len(at)], HIGHEST[: len(at)]
    claimed = low + bins / _LARGEST * (high - low)
    return bool(bins.max() <= _LARGEST and np.abs(claimed - np.clip(at, low, high)).max() <= WITHIN)


def _carried_out(response: str, reason: str) -> Iterator[str]:
    """The action of the response, if it does what the reason says."""
    action = last_match(_ACTION, response)
    if action is None:
        return
    _, _, z, *_, grip, _ = _bins(action)
    rises, sinks, closes = z >= _MIDDLE[0], z <= _MIDDLE[1], grip > _MIDDLE[0]
    does = {
        # The arm lags behind where it was sent: what is left of it need not be sent left again.
        "go above it": not closes,
        "go down": sinks and not closes,
        "close": closes,
        "lift": rises and closes,
        "carry it": closes,
        "lower it": sinks and closes,
        "open": not closes,
        "go up": rises and not closes,
    }
    if does.get(re.split(": |, ", reason)[-1], False):
        yield action


def _bins(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"[0-9]{3}", text)]
