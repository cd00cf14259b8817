"""What thoughts claim in ALFWorld, in the words of its expert, beside what can be known.

The truth is what the agent could read so far (`Notes`), never what is hidden: a guess that
happens to be right was not seen.
"""

import re
from collections.abc import Iterator, Sequence

from forethought.environments.alfworld.expert import TOOLS, reflect
from forethought.environments.alfworld.notes import Notes, kind
from forethought.environments.alfworld.package import Goal
from forethought.environments.parts import read_field
from forethought.types import Claim, ThoughtFacts

_NAME = r"[a-z]+ \d+"
_AT = re.compile(rf"({_NAME}) is (?:in|on) ({_NAME}), I (?:take it|get there)")
_TAKE = re.compile(rf"({_NAME}) is in ({_NAME}), I take it")
_GET_THERE = re.compile(rf"{_NAME} is (?:in|on) ({_NAME}), I get there")
_GOES_IN = re.compile(rf"({_NAME}) goes in ({_NAME})")
_BRING = re.compile(rf"I bring ({_NAME}) to ({_NAME})")
_MAKES = re.compile(rf"({_NAME}) makes ({_NAME}) (hot|cool|clean)")
_MUST_BE = re.compile(rf"({_NAME}) must be (hot|cool|clean), ({_NAME}) does it")
_LAMP = re.compile(r"the ([a-z]+) is here, I use it")
_LOOK_IN = re.compile(rf"no ([a-z]+) here, (?:left are ([a-z\d, ]+), )?I look in ({_NAME})")
_OF_NO_USE = re.compile(
    rf"({_NAME}) is of no use(?:, (it may go in|I leave it at) ({_NAME}))?|I cannot put ({_NAME})"
)
_NOWHERE = re.compile(r"I looked everywhere for |there is no [a-z]+$|I cannot put ")
_REFLECTION = re.compile(
    r"the [a-z]+ is (?:not )?(?:hot|cool|clean)|I have a [a-z]+$|one [a-z]+ is in place"
    r"|I know where a [a-z]+ is$|no [a-z]+ found so far$"
)


def alfworld_facts(
    response: str, *, goal: Goal, notes: Notes, commands: Sequence[str]
) -> ThoughtFacts:
    """Places of things, what is held, where was searched, and how far the task has come.

    Args:
        commands: those that are admissible now.
    """
    thoughts = read_field(response, "thoughts") or ""
    reflections = read_field(response, "reflections") or ""
    return ThoughtFacts(
        perceived=(
            *_places(thoughts, notes),
            *_held(thoughts, notes),
            *_searched(thoughts, goal, notes, commands),
            *_progress(reflections, goal, notes),
        ),
        inferred=tuple(_treatment(thoughts, goal)),
        concluded_actions=tuple(dict.fromkeys(_conclusions(thoughts, commands))),
    )


def _places(thoughts: str, notes: Notes) -> Iterator[Claim]:
    for thing, place in _AT.findall(thoughts):
        known = [there for name, there in notes.places_of(kind(thing)) if name == thing]
        yield Claim(f"place of {thing}", place, known[0] if known else "not seen")


def _held(thoughts: str, notes: Notes) -> Iterator[Claim]:
    things = [
        *(thing for thing, _ in _GOES_IN.findall(thoughts)),
        *(thing for thing, _ in _BRING.findall(thoughts)),
        *(thing for _, thing, _ in _MAKES.findall(thoughts)),
        *(thing for thing, _, _ in _MUST_BE.findall(thoughts)),
        *(thing or other for thing, _, _, other in _OF_NO_USE.findall(thoughts)),
    ]
    return (Claim("held", thing, notes.held or "nothing") for thing in things)


def _searched(thoughts: str, goal: Goal, notes: Notes, commands: Sequence[str]) -> Iterator[Claim]:
    for lamp in _LAMP.findall(thoughts):
        is_here = any(command.startswith(f"use {lamp} ") for command in commands)
        yield Claim(f"{lamp} here", "yes", "yes" if is_here else "no")
    for wanted, left, place in _LOOK_IN.findall(thoughts):
        is_here = any(
            _is_at_hand(where, notes, commands) and kind(where) != goal.place.lower()
            for _, where in notes.places_of(wanted)
        )
        yield Claim(f"{wanted} here", "no", "yes" if is_here else "no")
        for other in dict.fromkeys([*re.findall(_NAME, left), place]):
            exists = other in notes.receptacles
            true = "yes" if notes.is_explored(other) else "no" if exists else "there is none"
            yield Claim(f"{other} searched", "no", true)


def _is_at_hand(place: str, notes: Notes, commands: Sequence[str]) -> bool:
    return place == notes.here or f"examine {place}" in commands


def _progress(reflections: str, goal: Goal, notes: Notes) -> Iterator[Claim]:
    """What is said of the task's state, where it is said in the expert's words."""
    if _REFLECTION.match(reflections):
        yield Claim("progress", reflections, reflect(goal, notes))


def _treatment(thoughts: str, goal: Goal) -> Iterator[Claim]:
    """Which state a thing must be in, and what brings it there."""
    _, tool, state = TOOLS.get(goal.task_type, ("", "nothing", "nothing"))
    said = [
        *((place, claimed) for place, _, claimed in _MAKES.findall(thoughts)),
        *((place, claimed) for _, claimed, place in _MUST_BE.findall(thoughts)),
    ]
    for place, claimed in said:
        yield Claim("state that is asked for", claimed, state)
        yield Claim(f"makes it {claimed}", kind(place), tool)


def _conclusions(thoughts: str, commands: Sequence[str]) -> Iterator[str]:
    """Commands that carry out what the thoughts say is done next."""
    for thing, place in _TAKE.findall(thoughts):
        yield f"take {thing} from {place}"
    for place in (
        *_GET_THERE.findall(thoughts),
        *(place for _, place in _BRING.findall(thoughts)),
        *(place for _, _, place in _MUST_BE.findall(thoughts)),
        *(place for _, _, place in _LOOK_IN.findall(thoughts)),
    ):
        yield from (f"go to {place}", f"open {place}", f"examine {place}")
    for thing, place in _GOES_IN.findall(thoughts):
        yield from (f"move {thing} to {place}", f"put {thing} in/on {place}")
    for place, thing, state in _MAKES.findall(thoughts):
        verb = next(verb for verb, _, brought in TOOLS.values() if brought == state)
        yield f"{verb} {thing} with {place}"
    for lamp in _LAMP.findall(thoughts):
        yield from (command for command in commands if command.startswith(f"use {lamp} "))
    for thing, how, place, _ in _OF_NO_USE.findall(thoughts):
        if not thing:
            continue
        if place:
            yield f"{'open' if how == 'it may go in' else 'go to'} {place}"
        else:
            ways = (f"move {thing} to ", f"put {thing} in/on ")
            yield from (command for command in commands if command.startswith(ways))
    if _NOWHERE.search(thoughts):
        yield "look" if "look" in commands else commands[0] if commands else "look"
