"""What thoughts claim of the scene, in the words of the script, beside what is so."""

import re
from collections.abc import Iterator

import numpy as np

from forethought.environments.manipulation.simulator import HIGHEST, LOWEST, Vector
from forethought.environments.parts import last_match, read_field
from forethought.types import Claim, ThoughtFacts

WITHIN = 0.02
"""How far a claimed place may be from the true one, meters, in each direction: the fingers, open,
still close around the object."""

_PLACE = r"((?:b[0-9]{3}){3})\. "
_REASON = re.compile(r"(?:b[0-9]{3}){3}\. (.+)")
_ACTION = r'"action"\s*:\s*"((?:b[0-9]{3}){8})"'
_LARGEST = 255
_MIDDLE = (127, 128)
"""Bins of no shift."""


def manipulation_facts(
    response: str, *, name: str, at: Vector, place: str, reason: str
) -> ThoughtFacts:
    """Where the object is, and why the next action is taken.

    Args:
        name: what the object is called.
        at: its place, meters [3].
        place: the same in bins of the workspace.
        reason: the script's, in the present state.
    """
    thoughts = read_field(response, "thoughts") or ""
    said = last_match(re.escape(name) + ": " + _PLACE, thoughts)
    true = said if said is not None and _is_near(said, at) else place
    found = _REASON.search(thoughts)
    return ThoughtFacts(
        perceived=(Claim(f"place of {name}", said, true),),
        inferred=(Claim("reason", None if found is None else found[1], reason),),
        concluded_actions=tuple(_carried_out(response, "" if found is None else found[1])),
    )


def _is_near(said: str, at: Vector) -> bool:
    bins = np.array(_bins(said))
    claimed = LOWEST + bins / _LARGEST * (HIGHEST - LOWEST)
    return bool(
        bins.max() <= _LARGEST and np.abs(claimed - np.clip(at, LOWEST, HIGHEST)).max() <= WITHIN
    )


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
