"""The six kinds of task, and which rooms and pairs of thing and place each split holds."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Literal, NamedTuple

from forethought.environments.alfworld.package import constants, room_numbers

SPLITS = ("train", "valid_seen", "valid_unseen")
Split = Literal["train", "valid_seen", "valid_unseen"]


class TaskType(StrEnum):
    """The package's name of a kind of task; `label` is the papers'."""

    PICK = "pick_and_place_simple"
    LOOK = "look_at_obj_in_light"
    CLEAN = "pick_clean_then_place_in_recep"
    HEAT = "pick_heat_then_place_in_recep"
    COOL = "pick_cool_then_place_in_recep"
    PICK2 = "pick_two_obj_and_place"

    @property
    def label(self) -> str:
        """ "Pick", "Look", "Clean", "Heat", "Cool", "Pick2"."""
        return self.name.capitalize()


class Shares(NamedTuple):
    """How many games of each kind the official split has."""

    counts: dict[TaskType, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def _shares(*counts: int) -> Shares:
    return Shares(dict(zip(TaskType, counts, strict=True)))


OFFICIAL_GAMES: dict[Split, Shares] = {
    "train": _shares(790, 308, 650, 459, 533, 813),
    "valid_seen": _shares(35, 13, 27, 16, 25, 24),
    "valid_unseen": _shares(24, 18, 31, 23, 21, 17),
}
"""3,553, 140 and 134 games, those with sliced things and movable receptacles left out."""

OFFICIAL_UNSEEN_ROOMS = (10, 219, 308, 424)

UNSEEN_OF = 5
"""One pair of thing and place in so many is held out."""


@dataclass(frozen=True)
class Goal:
    """What a game asks for, in the package's names: "Mug", "CounterTop", "DeskLamp"."""

    task_type: TaskType
    thing: str
    place: str
    """The receptacle's type; empty where a lamp is the aim."""
    lamp: str
    """The lamp's type; empty but for `LOOK`."""

    @property
    def aim(self) -> str:
        """Where the thing is to be brought: the receptacle's or the lamp's type."""
        return self.place or self.lamp


@cache
def rooms_of(split: Split) -> tuple[int, ...]:
    """Training and `valid_seen` share their rooms; `valid_unseen` has 28 others: the
    package's test scenes, and the four unseen rooms of the official games."""
    held_out = {*constants().TEST_SCENE_NUMBERS, *OFFICIAL_UNSEEN_ROOMS}
    return tuple(n for n in room_numbers() if (n in held_out) == (split == "valid_unseen"))


def is_held_out(thing: str, aim: str) -> bool:
    """Whether a pair of thing and place is kept for `valid_unseen`; by a digest of the names,
    so the same on every machine."""
    digest = hashlib.sha256(f"{thing} {aim}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % UNSEEN_OF == 0


@cache
def static_receptacles() -> frozenset[str]:
    """Types of receptacle that stay where they are."""
    tables = constants()
    return frozenset(tables.RECEPTACLES) - frozenset(tables.MOVABLE_RECEPTACLES_SET)


@cache
def portable_things() -> dict[str, frozenset[str]]:
    """Types of thing that can be picked up, with the receptacle types in which each may lie."""
    allowed = {
        place: things
        for place, things in constants().VAL_RECEPTACLE_OBJECTS.items()
        if place in static_receptacles()
    }
    names = sorted({thing for things in allowed.values() for thing in things})
    return {
        name: frozenset(place for place, things in allowed.items() if name in things)
        for name in names
        if not name.endswith("Sliced")
    }


@cache
def openable_types() -> frozenset[str]:
    """Types of receptacle that are closed at first, and can be opened."""
    return frozenset(constants().OPENABLE_CLASS_LIST) & static_receptacles()


def changeable(task_type: TaskType) -> frozenset[str] | None:
    """Types of thing that can be cleaned, heated or cooled; None where nothing is asked."""
    key = {TaskType.CLEAN: "Cleanable", TaskType.HEAT: "Heatable", TaskType.COOL: "Coolable"}
    name = key.get(task_type)
    return None if name is None else frozenset(constants().VAL_ACTION_OBJECTS[name])
