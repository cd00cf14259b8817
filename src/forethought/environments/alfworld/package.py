"""What the installed `alfworld` package holds: rules, goals, tables, the plans of 120 rooms.

Its top-level module creates a folder in the home directory and sets ALFWORLD_DATA when it
is imported, so the files that are needed are read one by one.
"""

import hashlib
import importlib
import importlib.util
import json
import os
import random
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np

from forethought.errors import MissingDependencyError

Point = tuple[int, int, int, int]
"""Where the agent is and looks: x and z in steps of 0.25 m, quarter turns, degrees."""

STEP_M = 0.25


@dataclass(frozen=True)
class Room:
    """One of the package's 120 rooms."""

    number: int
    """1–30 kitchens, 201–230 living rooms, 301–330 bedrooms, 401–430 bathrooms."""
    kind: str
    """"Kitchen", "LivingRoom", "Bedroom", "Bathroom"."""
    object_types: tuple[str, ...]
    """Types of things that the room holds, receptacles among them, in alphabetical order."""
    receptacles: tuple[tuple[str, Point], ...]
    """Ids such as "Drawer|+00.95|+00.22|-02.20" with the point from which each is reached."""
    floor: tuple[tuple[int, int], ...]
    """Where the agent can stand."""


@cache
def package_folder() -> Path:
    """Raises:
    MissingDependencyError: the package is not installed.
    """
    found = importlib.util.find_spec("alfworld")
    if found is None or not found.submodule_search_locations:
        raise MissingDependencyError(
            'ALFWorld needs alfworld, not installed — run: pip install "forethought[alfworld]"'
        )
    return Path(found.submodule_search_locations[0])


@cache
def domain_text() -> str:
    """The rules, in PDDL."""
    return (package_folder() / "data" / "alfred.pddl").read_text(encoding="utf-8")


@cache
def grammar_text() -> str:
    """Texts of commands and of what follows; the task is in it as "UNKNOWN GOAL"."""
    return (package_folder() / "data" / "alfred.twl2").read_text(encoding="utf-8")


@cache
def constants() -> Any:
    """The package's tables: object types, what may lie where, what can be heated."""
    return _module("constants")


@cache
def goal_library() -> Any:
    """The package's goals, as PDDL and in words."""
    return _module("goal_library")


def _module(name: str) -> ModuleType:
    path = package_folder() / "gen" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"_forethought_alfworld_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def room_numbers() -> tuple[int, ...]:
    """All 120 rooms."""
    return tuple(sorted(int(number) for number in constants().SCENE_NUMBERS))


@cache
def load_room(number: int) -> Room:
    """Raises:
    ValueError: there is no such room.
    """
    if number not in room_numbers():
        raise ValueError(f"room {number} — expected one of {len(room_numbers())}, such as 1 or 430")
    folder = package_folder() / "gen" / "layouts"
    receptacles = json.loads((folder / f"FloorPlan{number}-openable.json").read_text())
    types = json.loads((folder / f"FloorPlan{number}-objects.json").read_text())
    floor = np.load(folder / f"FloorPlan{number}-layout.npy", allow_pickle=False)
    kinds = constants().SCENE_TYPE
    return Room(
        number=number,
        kind=next(kind for kind, numbers in kinds.items() if number in numbers),
        object_types=tuple(sorted(types)),
        receptacles=tuple((name, _point(receptacles[name])) for name in sorted(receptacles)),
        floor=tuple(sorted({(round(x / STEP_M), round(z / STEP_M)) for x, z in floor.tolist()})),
    )


def _point(pose: list[float]) -> Point:
    x, z, rotation, horizon = pose
    return round(x / STEP_M), round(z / STEP_M), round(rotation / 90), round(horizon)


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
        """Games of all kinds together."""
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


DATA_VARIABLE = "ALFWORLD_DATA"
"""Environment variable of the package: the folder of the official games."""


class Libraries(NamedTuple):
    """The modules that are used; none of them has types."""

    planner: Any
    """`fast_downward`."""
    logic: Any
    """`textworld.logic`: facts, and queries over them."""
    game: Any
    """`textworld.envs.pddl.logic`: the grammar's actions, the planner's atoms."""
    text: Any
    """`textworld.envs.pddl.textgen`: the grammar's symbols."""


def data_folder() -> str | None:
    """What ALFWORLD_DATA names; None where it is not set."""
    return os.environ.get(DATA_VARIABLE) or None


MAX_REMEMBERED = 20_000
"""Facts that TextWorld keeps for ever, one object each, and compares by value: some 20 MB."""


def forget_facts() -> None:
    """Keeps a process that plays thousands of games from growing by a megabyte with each."""
    import mementos.core

    remembered: dict[Any, Any] = mementos.core._memento_cache  # pyright: ignore[reportPrivateUsage]
    if len(remembered) > MAX_REMEMBERED:
        remembered.clear()


_unused: list[Any] = []
"""Copies of the planner's library that are loaded and that no engine holds."""


def borrow_planner() -> Any:
    """A copy of the planner's library; each has a game of its own in its global variables."""
    return _unused.pop() if _unused else load_libraries().planner.load_lib()


def return_planner(library: Any) -> None:
    """For the next engine. It is never unloaded: the process would crash when it ends."""
    _unused.append(library)


@cache
def load_libraries() -> Libraries:
    """Imports them once."""
    with _imports_undone():
        import fast_downward
        import textworld.logic
        from textworld.envs.pddl import logic, textgen

        return Libraries(fast_downward, textworld.logic, logic, textgen)


@cache
def import_alfworld(module: str) -> Any:
    """A module of the `alfworld` package, such as "alfworld.agents.environment".

    Raises:
        ImportError: it, or what it needs, is not installed.
    """
    with _imports_undone():
        return importlib.import_module(module)


@contextmanager
def _imports_undone() -> Generator[None]:
    """Leaves the global generators and ALFWORLD_DATA as they were, and the home directory
    without the empty folder that `alfworld` makes for its data."""
    python_state, numpy_state = random.getstate(), np.random.get_state()
    data = os.environ.get(DATA_VARIABLE)
    os.environ[DATA_VARIABLE] = data or tempfile.gettempdir()
    try:
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        if data is None:
            del os.environ[DATA_VARIABLE]
        else:
            os.environ[DATA_VARIABLE] = data
