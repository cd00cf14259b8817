"""ALFWorld's summary of an episode: all that is worth remembering, in about a hundred tokens.

    hold: mug 1, hot
    seen: mug 2 in drawer 3
    placed: mug 4 in shelf 2
    obs: cabinet 4 is closed
    open: cabinet 4
    examine: mug 1
    also: help, inventory, look
    go visited: drawer 1-3
    examine new: cabinet 4
    go new: cabinet 1-3, shelf 1

`seen` names what the goal names and the agent has found, as far as it must still be there;
`placed` is such a thing where the goal wants it, in a receptacle that the goal names.
The commands are all that are admissible, by verb; receptacles into which the agent has not
looked come last (`examine new`, at the same point, and `go new`). It is the `Memory` of this
world (`environments/wording.py`): call it as

    alfworld_summary(past, observation)     # -> the observation with this text

with the episode's steps so far, oldest first. A function of what was shown and done, and of
nothing else.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from forethought.environments.alfworld.commands import group_commands
from forethought.environments.alfworld.notes import (
    NOTHING_HAPPENS,
    Exchange,
    Notes,
    kind,
)
from forethought.environments.wording import Past
from forethought.types import Observation

FIRST = "hold: "
"""How every summary begins, and no observation of the world itself."""

_ARTICLE = re.compile(r"\ba ([a-z]+ \d+)")
_ARRIVED = re.compile(r"^You arrive at [a-z]+ \d+\. ")


def alfworld_summary(past: Sequence[Past], observation: Observation) -> Observation:
    """The present observation with the summary as its text."""
    notes = Notes.of(exchanges(past, observation))
    latest = observation.text or ""
    held = notes.held
    found = seen(notes)
    lines = [
        FIRST + (", ".join([held, *sorted(notes.states.get(held, ()))]) if held else "nothing"),
        "seen: " + (", ".join(found.elsewhere) or "nothing"),
        *(["placed: " + ", ".join(found.placed)] if found.placed else []),
        "obs: " + (shorten(latest) if past else "the room"),
        *group_commands(
            observation.admissible_actions or (),
            frozenset(notes.receptacles) - frozenset(notes.contents),
        ),
    ]
    return replace(observation, text="\n".join(lines))


def exchanges(past: Sequence[Past], observation: Observation) -> list[Exchange]:
    """Commands with the reply that each got; the introduction stands first."""
    texts = [*(step.observation.text or "" for step in past), observation.text or ""]
    actions = [None, *(step.action for step in past)]
    return [Exchange(action, text) for action, text in zip(actions, texts, strict=True)]


class Found(NamedTuple):
    """Things whose class the goal names, with their place and what was done to them."""

    elsewhere: list[str]
    placed: list[str]
    """In a receptacle whose class the goal names, too."""


def seen(notes: Notes) -> Found:
    """What is known of the things that the goal names."""
    words = set(re.findall(r"[a-z]+", notes.goal))
    found = Found([], [])
    for place, things in notes.contents.items():
        for thing in things:
            if kind(thing) in words:
                states = sorted(notes.states.get(thing, ()))
                told = " ".join([*states, thing, "in", place])
                (found.placed if kind(place) in words else found.elsewhere).append(told)
    return found


def shorten(text: str) -> str:
    """A reply without the words that say nothing."""
    if text.strip() == NOTHING_HAPPENS:
        return "nothing happens"
    short = _ARTICLE.sub(r"\1", _ARRIVED.sub("", text)).replace(" you see ", " ")
    return short.replace(", and ", ", ").rstrip(".")
