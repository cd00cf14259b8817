"""What the oracle knows: 158 objects, and what is true of which.

Both tables are written by hand: `objects.txt` and `attributes.txt`, which say how to read them.
"""

import re
from functools import cache, lru_cache
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


_SUBJECTS = ("it", "the object")
_GUESSES = ("Is it {}?", "Could it be {}?", "Are you thinking of {}?", "Is the object {}?")


@cache
def sentences() -> tuple[tuple[str, ...], ...]:
    """All ways to ask each question that the grammar writes, the usual one first.

    Questions are numbered: the attributes first, then a guess of each object.
    """
    asked = [
        tuple(_sentence(asked, subject) for asked in attribute.questions for subject in _SUBJECTS)
        for attribute in load_attributes()
    ]
    guessed = [
        tuple(frame.format(called) for called in thing.guesses for frame in _GUESSES)
        for thing in load_things()
    ]
    return tuple(tuple(dict.fromkeys(ways)) for ways in (*asked, *guessed))


@cache
def names() -> tuple[str, ...]:
    """Names of what each question asks, "metal", "cat", numbered as `sentences`."""
    return tuple(asked.name for asked in (*load_attributes(), *load_things()))


@cache
def bare_words() -> tuple[str, ...]:
    """Each question as the name of what it asks, "metal?", "cat?", numbered as `sentences`."""
    return tuple(f"{name}?" for name in names())


def _sentence(question: str, subject: str) -> str:
    sentence = re.sub(r"\bit\b", subject, question, count=1)
    return sentence[0].upper() + sentence[1:] + "?"


@lru_cache(maxsize=1 << 16)
def understand(text: str) -> int | None:
    """The number of the question that a text asks, or None where it is not understood.

    A text is brought into a plain form (case, punctuation, openers, adverbs, other words for
    "it", other ways to guess); what is then not in the list of questions is not understood.
    """
    if len(text) > _LONGEST:
        return None
    plain = _plain(text)
    forms = (plain, *_without_kind(plain))
    return next((_known()[form] for form in forms if form in _known()), None)


_LONGEST = 200
_OPENERS = re.compile(r"^(?:(?:so|well|ok|okay|hmm|now|then|and|please|tell me|i wonder)\b[ ,]*)+")
_REWRITES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\b(?:the|this|that|your|the hidden|the secret) (?:object|thing|item)\b", "it"),
        (r"^(is|does|can|did) (?:this|that)\b", r"\1 it"),
        (r"\b(?:usually|normally|typically|generally|often|commonly|mostly|mainly) ", ""),
        (r"^would you say (?:that )?it is\b", "is it"),
        (r"^would you call it\b", "is it"),
        (r"^(?:could|might|may) it be\b", "is it"),
        (r"^(?:are you thinking of|my guess is|is the answer)\b", "is it"),
        (r"^i (?:guess|think|say)(?: it is)?\b", "is it"),
        (r"^is it able to\b", "can it"),
        (r"^has it got\b", "does it have"),
        (r"^is it made out of\b", "is it made of"),
        (r"^is it something (?:that )?(?:you|people|we|one) can eat\b", "can you eat it"),
        (r"^(do|can) (?:people|we|i|one)\b", r"\1 you"),
        (r"^is it (?:the|an?) ", "is it a "),
    )
)


def _plain(text: str) -> str:
    plain = " ".join(text.lower().split()).rstrip("?!. ")
    plain = _OPENERS.sub("", plain)
    for pattern, replacement in _REWRITES:
        plain = pattern.sub(replacement, plain)
    return plain


def _without_kind(plain: str) -> tuple[str, ...]:
    """ "is it a kind of fruit" asks what "is it a fruit" asks, "is it a sort of corn" likewise."""
    match = re.match(r"is it a (?:kind|type|sort) of (?:an? )?(.+)", plain)
    return (f"is it a {match[1]}", f"is it {match[1]}") if match else ()


@cache
def _known() -> dict[str, int]:
    """The number of each question by its plain form.

    Raises:
        ValueError: one form asks two questions.
    """
    known: dict[str, int] = {}
    for number, (ways, bare) in enumerate(zip(sentences(), bare_words(), strict=True)):
        for way in (*ways, bare):
            if known.setdefault(_plain(way), number) != number:
                raise ValueError(f"got {way!r} for {known[_plain(way)]} and {number}, expected one")
    return known
