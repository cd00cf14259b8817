"""What an agent can know from the texts so far: the memory of prompt and expert.

A pure function of the episode's past, made of nothing but commands and texts. Whatever
is hidden from the agent is hidden here.

    notes = Notes.of([Exchange(None, introduction), Exchange("go to desk 1", "You arrive …"), …])
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

NOTHING_HAPPENS = "Nothing happens."

_SEEN = re.compile(r"(?:On|In) (?:the )?([a-z]+ \d+|it), you see ([^.]*)\.")
_OPEN = re.compile(r"[Tt]he ([a-z]+ \d+) is (open|closed)\.")
_TAKE = re.compile(r"You pick up the ([a-z]+ \d+) from the ([a-z]+ \d+)\.")
_MOVE = re.compile(r"You (?:move|put) the ([a-z]+ \d+) (?:to|in/on) the ([a-z]+ \d+)\.")
_TREAT = re.compile(r"You (heat|cool|clean) the ([a-z]+ \d+) using the ([a-z]+ \d+)\.")
_ARRIVE = re.compile(r"You arrive at ([a-z]+ \d+)\.")
_ROOM = re.compile(r"Looking quickly around you, you see ([^.]*)\.")
_TASK = re.compile(r"Your task is to: (.*?)\.?\s*$", re.DOTALL)
_CLOSE = re.compile(r"You close the ([a-z]+ \d+)\.")
_LAMP = re.compile(r"You turn (on|off) the ([a-z]+ \d+)\.")
_NAME = re.compile(r"[a-z]+ \d+")

_STATE = {"heat": "hot", "cool": "cool", "clean": "clean"}


class Exchange(NamedTuple):
    """A command, or any other text that was tried, and the text that followed."""

    action: str | None
    """None for the introduction."""
    text: str


@dataclass(frozen=True)
class Notes:
    """What is known after an episode's past."""

    goal: str = ""
    """ "put a hot mug in cabinet"."""
    receptacles: tuple[str, ...] = ()
    """As the introduction names them."""
    here: str | None = None
    """The receptacle that the agent went to last."""
    held: str | None = None
    states: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """States of things that were heated, cooled, cleaned: "hot", "cool", "clean"."""
    contents: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Receptacle to what lies in it, where that was seen; as it must be now."""
    closed: frozenset[str] = frozenset()
    """Receptacles that are known to be closed."""
    visited: frozenset[str] = frozenset()
    """Receptacles that the agent went to."""
    lit: frozenset[str] = frozenset()
    """Lamps that were turned on."""
    failed: str | None = None
    """The last command, where nothing happened."""
    steps: int = 0
    """Commands so far, those without effect included."""

    @staticmethod
    def of(past: Sequence[Exchange]) -> "Notes":
        """Reads the whole past, the introduction first."""
        notes = Notes()
        for exchange in past:
            notes = notes.after(exchange)
        return notes

    def after(self, exchange: Exchange) -> "Notes":
        """What is known after one more command and its text."""
        action, text = exchange
        if action is None:
            return _introduced(self, text)
        notes = replace(self, steps=self.steps + 1)
        if text.strip() == NOTHING_HAPPENS:
            return replace(notes, failed=action)
        notes = replace(notes, failed=None)
        if arrived := _ARRIVE.search(text):
            here = arrived.group(1)
            notes = replace(notes, here=here, visited=notes.visited | {here})
        return _looked(_handled(notes, text), text)

    def places_of(self, kind: str) -> tuple[tuple[str, str], ...]:
        """Where things of a kind were seen and still lie: (thing, receptacle), in the order
        in which the receptacles were looked into."""
        return tuple(
            (thing, place)
            for place, things in self.contents.items()
            for thing in things
            if thing.rpartition(" ")[0] == kind
        )

    def is_explored(self, place: str) -> bool:
        """Whether its contents were seen."""
        return place in self.contents


def kind(name: str) -> str:
    """ "mug 1" is a mug."""
    return name.rpartition(" ")[0]


def _introduced(notes: Notes, text: str) -> Notes:
    room, task = _ROOM.search(text), _TASK.search(text)
    return replace(
        notes,
        goal=task.group(1).strip() if task else "",
        receptacles=tuple(_NAME.findall(room.group(1))) if room else (),
    )


def _handled(notes: Notes, text: str) -> Notes:
    """What the agent's hands did."""
    contents = dict(notes.contents)
    if taken := _TAKE.search(text):
        thing, place = taken.groups()
        contents[place] = _without(contents.get(place, ()), thing)
        return replace(notes, held=thing, contents=contents)
    if moved := _MOVE.search(text):
        thing, place = moved.groups()
        contents[place] = (*_without(contents.get(place, ()), thing), thing)
        return replace(notes, held=None, contents=contents)
    if treated := _TREAT.search(text):
        verb, thing, _ = treated.groups()
        opposite = {"heat": "cool", "cool": "hot"}.get(verb, "")
        state = (notes.states.get(thing, frozenset()) - {opposite}) | {_STATE[verb]}
        return replace(notes, states={**notes.states, thing: state})
    if turned := _LAMP.search(text):
        return replace(notes, lit=notes.lit | {turned.group(2)})
    if shut := _CLOSE.search(text):
        return replace(notes, closed=notes.closed | {shut.group(1)})
    return notes


def _looked(notes: Notes, text: str) -> Notes:
    """What the agent's eyes saw."""
    contents, closed, last = dict(notes.contents), set(notes.closed), ""
    for found in _OPEN.finditer(text):
        last, state = found.groups()
        (closed.add if state == "closed" else closed.discard)(last)
    for found in _SEEN.finditer(text):
        place = last if found.group(1) == "it" else found.group(1)
        if place in notes.receptacles:
            contents[place] = tuple(_NAME.findall(found.group(2)))
    return replace(notes, contents=contents, closed=frozenset(closed))


def _without(things: Iterable[str], thing: str) -> tuple[str, ...]:
    return tuple(other for other in things if other != thing)
