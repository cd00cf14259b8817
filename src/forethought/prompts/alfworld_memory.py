"""ALFWorld's summary of an episode: all that is worth remembering, in about a hundred tokens.

    hold: mug 1, hot
    seen: mug 2 in drawer 3
    obs: cabinet 4 is closed
    open: cabinet 4
    examine: cabinet 4, mug 1
    also: help, inventory, look
    go visited: drawer 1-3
    go new: cabinet 1-3, shelf 1

`seen` names what the goal names and the agent has found, as far as it must still be there.
The commands are all that are admissible, by verb; receptacles into which the agent has not
looked come last (`go new`). It is the `Memory` of this world (`prompts/contract.py`): call it as

    alfworld_memory(past, observation)     # -> the observation with this text

with the episode's steps so far, oldest first. A function of what was shown and done, and of
nothing else.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from forethought.environments.alfworld.notes import (
    NOTHING_HAPPENS,
    Exchange,
    Notes,
    kind,
)
from forethought.prompts.alfworld_commands import group_commands
from forethought.prompts.contract import Past
from forethought.types import Observation

FIRST = "hold: "
"""How every summary begins, and no observation of the world itself."""

_ARTICLE = re.compile(r"\ba ([a-z]+ \d+)")
_ARRIVED = re.compile(r"^You arrive at [a-z]+ \d+\. ")


def alfworld_memory(past: Sequence[Past], observation: Observation) -> Observation:
    """The present observation with the summary as its text."""
    notes = Notes.of(exchanges(past, observation))
    latest = observation.text or ""
    held = notes.held
    lines = [
        FIRST + (", ".join([held, *sorted(notes.states.get(held, ()))]) if held else "nothing"),
        "seen: " + (seen(notes) or "nothing"),
        "obs: " + (shorten(latest) if past else "the room"),
        *group_commands(observation.admissible_actions or (), frozenset(notes.contents)),
    ]
    return replace(observation, text="\n".join(lines))


def exchanges(past: Sequence[Past], observation: Observation) -> list[Exchange]:
    """Commands with the reply that each got; the introduction stands first."""
    texts = [*(step.observation.text or "" for step in past), observation.text or ""]
    actions = [None, *(step.action for step in past)]
    return [Exchange(action, text) for action, text in zip(actions, texts, strict=True)]


def seen(notes: Notes) -> str:
    """Things whose class the goal names, with their place and what was done to them."""
    words = set(re.findall(r"[a-z]+", notes.goal))
    found: list[str] = []
    for place, things in notes.contents.items():
        for thing in things:
            if kind(thing) in words:
                states = sorted(notes.states.get(thing, ()))
                found.append(" ".join([*states, thing, "in", place]))
    return ", ".join(found)


def shorten(text: str) -> str:
    """A reply without the words that say nothing."""
    if text.strip() == NOTHING_HAPPENS:
        return "nothing happens"
    short = _ARTICLE.sub(r"\1", _ARRIVED.sub("", text)).replace(" you see ", " ")
    return short.replace(", and ", ", ").rstrip(".")
