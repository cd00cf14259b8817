"""The expert: solves every kind of task from what an agent can know, and says why.

It searches surfaces before containers, and only where the thing may lie. Receptacles can
share the point from which they are reached: "go to" does nothing there, but they can be
opened, looked at and emptied from where the agent is. Which these are shows in the
admissible commands, and is not looked up.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

from forethought.environments.alfworld.notes import Notes, kind
from forethought.environments.alfworld.package import (
    Goal,
    TaskType,
    openable_types,
    portable_things,
)
from forethought.environments.contract import ExpertAction

TOOLS = {
    TaskType.CLEAN: ("clean", "sinkbasin", "clean"),
    TaskType.HEAT: ("heat", "microwave", "hot"),
    TaskType.COOL: ("cool", "fridge", "cool"),
}
"""Verb, receptacle, and the state that follows."""

MAX_WORDS = 60
"""Length of a response (InteractiveCOT, Fig. 3)."""


class _Move(NamedTuple):
    """What to do next, and why."""

    action: str
    thoughts: str
    """What is seen, and what follows from it."""


def advise(
    goal: Goal, notes: Notes, commands: Sequence[str], *, scans: bool = False
) -> ExpertAction:
    """Decides on the next command.

    Args:
        commands: those that are admissible now, at least one.
        scans: whether the thoughts of a search go through what is left before they name a place.

    Returns:
        Thoughts, reflections and the action, at most 60 words together.
    """
    move = _Decision(goal, notes, commands, scans=scans).move()
    fields = (
        ("thoughts", json.dumps(move.thoughts)),
        ("reflections", json.dumps(reflect(goal, notes))),
    )
    return ExpertAction(move.action, fields)


def reflect(goal: Goal, notes: Notes) -> str:
    """How far the task has come, in words."""
    thing = goal.thing.lower()
    state = TOOLS[goal.task_type][2] if goal.task_type in TOOLS else None
    held = notes.held is not None and kind(notes.held) == thing
    is_treated = state is None or (held and state in notes.states.get(notes.held or "", ()))
    if held:
        if not is_treated:
            return f"the {thing} is not {state} yet"
        return f"the {thing} is {state}, {goal.aim.lower()} next" if state else f"I have a {thing}"
    if goal.task_type is TaskType.PICK2 and _delivered(goal, notes):
        return f"one {thing} is in place, one to go"
    seen = bool(notes.places_of(thing))
    return f"I know where a {thing} is" if seen else f"no {thing} found so far"


def _delivered(goal: Goal, notes: Notes) -> str | None:
    """For two things: the receptacle in which one lies already, so that both get there."""
    places = [place for _, place in notes.places_of(goal.thing.lower())]
    return next((place for place in places if kind(place) == goal.place.lower()), None)


class _Decision:
    """One decision."""

    def __init__(self, goal: Goal, notes: Notes, commands: Sequence[str], *, scans: bool) -> None:
        self._scans = scans
        self._goal = goal
        self._notes = notes
        self._commands = commands
        self._known = frozenset(commands)
        self._thing = goal.thing.lower()
        self._reachable = tuple(r for r in notes.receptacles if f"examine {r}" in self._known)
        """Receptacles at the point where the agent is."""

    def move(self) -> _Move:
        held = self._notes.held
        if held is not None and kind(held) != self._thing:
            return self._put_down(held)
        if held is not None:
            return self._use_lamp() if self._goal.task_type is TaskType.LOOK else self._bring(held)
        return self._fetch()

    # --- empty hands -----------------------------------------------------------------------

    def _fetch(self) -> _Move:
        """Takes the thing, goes to where it was seen, or searches for it."""
        goal_place = self._goal.place.lower()
        done = _delivered(self._goal, self._notes)
        wanted = [
            (thing, place)
            for thing, place in self._notes.places_of(self._thing)
            if not self._is_in_place(thing, place, goal_place, done)
        ]
        for thing, place in wanted:
            command = f"take {thing} from {place}"
            if command in self._known:
                return _Move(command, f"{thing} is in {place}, I take it")
        for thing, place in wanted:
            step = self._approach(place)
            if step is not None:
                return _Move(step, f"{thing} is in {place}, I get there")
        return self._search(self._thing, self._likely_places())

    def _is_in_place(self, thing: str, place: str, goal_place: str, done: str | None) -> bool:
        """Whether the thing had better stay."""
        if kind(place) != goal_place or self._goal.task_type is TaskType.LOOK:
            return False
        if self._goal.task_type is TaskType.PICK2:
            return place == done
        state = TOOLS[self._goal.task_type][2] if self._goal.task_type in TOOLS else None
        return state is None or state in self._notes.states.get(thing, ())

    def _likely_places(self) -> frozenset[str]:
        """Types of receptacle in which the package's table allows the thing."""
        allowed = portable_things().get(self._goal.thing, frozenset())
        return frozenset(place.lower() for place in allowed)

    # --- the thing in hand -----------------------------------------------------------------

    def _bring(self, held: str) -> _Move:
        """Treats the thing where that is asked, and takes it to its place."""
        tool = TOOLS.get(self._goal.task_type)
        if tool is not None and tool[2] not in self._notes.states.get(held, ()):
            return self._treat(held, *tool)
        place_kind = self._goal.place.lower()
        done = _delivered(self._goal, self._notes)
        places = [r for r in self._by_number() if kind(r) == place_kind]
        places.sort(key=lambda place: (place != done, place not in self._reachable))
        for place in places:
            for command in (f"move {held} to {place}", f"put {held} in/on {place}"):
                if command in self._known:
                    return _Move(command, f"{held} goes in {place}")
            step = self._approach(place)
            if step is not None:
                return _Move(step, f"I bring {held} to {place}")
        return self._search(place_kind, frozenset({place_kind}))

    def _treat(self, held: str, verb: str, tool: str, state: str) -> _Move:
        tools = [r for r in self._by_number() if kind(r) == tool]
        for place in sorted(tools, key=lambda place: place not in self._reachable):
            command = f"{verb} {held} with {place}"
            if command in self._known:
                return _Move(command, f"{place} makes {held} {state}")
            step = self._approach(place)
            if step is not None:
                return _Move(step, f"{held} must be {state}, {place} does it")
        return self._anything(f"there is no {tool}")

    def _use_lamp(self) -> _Move:
        lamp = self._goal.lamp.lower()
        for command in self._commands:
            if command.startswith(f"use {lamp} "):
                return _Move(command, f"the {lamp} is here, I use it")
        for thing, place in self._notes.places_of(lamp):
            step = self._approach(place)
            if step is not None:
                return _Move(step, f"{thing} is on {place}, I get there")
        surfaces = {kind(r) for r in self._notes.receptacles} - _openable_kinds()
        return self._search(lamp, frozenset(surfaces))

    def _put_down(self, held: str) -> _Move:
        """Rids the hand of a thing that nobody asked for."""
        for command in self._commands:
            if command.startswith((f"move {held} to ", f"put {held} in/on ")):
                return _Move(command, f"{held} is of no use")
        for place in self._reachable:
            if f"open {place}" in self._known:
                return _Move(f"open {place}", f"{held} is of no use, it may go in {place}")
        allowed = {
            place.lower()
            for name, places in portable_things().items()
            if name.lower() == kind(held)
            for place in places
        }
        for place in sorted(self._by_number(), key=lambda place: kind(place) not in allowed):
            if f"go to {place}" in self._known:
                return _Move(f"go to {place}", f"{held} is of no use, I leave it at {place}")
        return self._anything(f"I cannot put {held} down")

    # --- getting about ---------------------------------------------------------------------

    def _approach(self, place: str) -> str | None:
        """The next command on the way to a receptacle's inside; None where there is none."""
        if place in self._reachable:
            if f"open {place}" in self._known:
                return f"open {place}"
            return f"examine {place}" if not self._notes.is_explored(place) else None
        return f"go to {place}" if f"go to {place}" in self._known else None

    def _search(self, wanted: str, likely: frozenset[str]) -> _Move:
        """Looks into what was not looked into: here first, then surfaces, then containers."""
        unexplored = [r for r in self._by_number() if not self._notes.is_explored(r)]
        openable = _openable_kinds()
        unexplored.sort(
            key=lambda r: (
                kind(r) not in likely,
                r not in self._reachable or self._is_elsewhere_better(r, unexplored, likely),
                kind(r) in openable,
            )
        )
        for place in unexplored:
            step = self._approach(place)
            if step is not None:
                names_left = self._scans and step.startswith("go to ")
                left = _left(place, unexplored, likely) if names_left else ""
                return _Move(step, f"no {wanted} here, {left}I look in {place}")
        return self._anything(f"I looked everywhere for {wanted}")

    def _is_elsewhere_better(
        self, place: str, unexplored: list[str], likely: frozenset[str]
    ) -> bool:
        """A closed container at hand can wait while a likely surface is left."""
        openable = _openable_kinds()
        if kind(place) not in openable or place == self._notes.here:
            return False
        return any(kind(other) in likely - openable for other in unexplored)

    def _by_number(self) -> list[str]:
        return sorted(self._notes.receptacles, key=lambda r: (kind(r), int(r.rpartition(" ")[2])))

    def _anything(self, why: str) -> _Move:
        """An admissible command that does no harm."""
        harmless = [c for c in self._commands if c == "look"] or list(self._commands)
        return _Move(harmless[0], why)


def _openable_kinds() -> frozenset[str]:
    return frozenset(name.lower() for name in openable_types())


def _left(place: str, unexplored: Sequence[str], likely: frozenset[str]) -> str:
    """Where it may be, there or elsewhere: a place of each kind, in the alphabet's order."""
    is_likely = kind(place) in likely
    alike = [other for other in unexplored if (kind(other) in likely) == is_likely]
    firsts = {kind(other): other for other in reversed(alike)}
    return f"left are {', '.join(firsts[name] for name in sorted(firsts))}, "
