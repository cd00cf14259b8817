"""What the oracle knows: 158 objects, and what is true of which.

Both tables are written by hand: `objects.txt` and `attributes.txt`, which say how to read them.
"""

from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Thing(NamedTuple):
    """An object that may be hidden."""

    name: str
    category: str
    guesses: tuple[str, ...]
    """How it is called in a guess, article included, the usual way first: "an airplane"."""


class Attribute(NamedTuple):
    """Something that is true of some objects and false of the others."""

    name: str
    questions: tuple[str, ...]
    """Ways to ask for it, the usual one first, without question mark: "is it alive"."""
    objects: frozenset[str]
    """Names of the objects of which it is true."""


@cache
def load_things() -> tuple[Thing, ...]:
    """The objects, by category, in the order of their numbers."""
    things: list[Thing] = []
    category = ""
    for line in _lines("objects.txt"):
        if line.startswith("["):
            category = line[1:-1]
        elif line:
            name, _, guesses = line.partition(": ")
            things.append(Thing(name, category, tuple(guesses.split(", "))))
    return tuple(things)


@cache
def load_attributes() -> tuple[Attribute, ...]:
    """The attributes, in the order of their numbers.

    Raises:
        ValueError: the table names an object that there is not.
    """
    lines = [line for line in _lines("attributes.txt") if line]
    return tuple(
        Attribute(name, tuple(questions.split(" | ")), _members(name, words.split()))
        for name, questions, words in zip(lines[::3], lines[1::3], lines[2::3], strict=True)
    )


@cache
def truth_table() -> NDArray[np.bool_]:
    """Whether an attribute is true of an object, [objects, attributes]; not to be written."""
    table = np.array([[t.name in a.objects for a in load_attributes()] for t in load_things()])
    table.flags.writeable = False
    return table


def _members(attribute: str, words: list[str]) -> frozenset[str]:
    """The objects that a line names: objects, whole categories, less those behind "-".

    Raises:
        ValueError: a word names nothing, or takes away what was not there.
    """
    members: set[str] = set()
    for word in words:
        name = word.removeprefix("-").replace("_", " ")
        named = {thing.name for thing in load_things() if name in (thing.name, thing.category)}
        if not named or (named <= members) != word.startswith("-"):
            raise ValueError(f"attributes.txt: {attribute}: got {word}, expected a new object")
        members = members - named if word.startswith("-") else members | named
    return frozenset(members)


def _lines(file: str) -> list[str]:
    text = (files("forethought.environments.twenty_questions") / file).read_text(encoding="utf-8")
    return [line for line in text.split("\n") if not line.startswith("#")]
