"""What the installed `alfworld` package holds: rules, goals, tables, the plans of 120 rooms.

Its top-level module creates a folder in the home directory and sets ALFWORLD_DATA when it
is imported, so the files that are needed are read one by one.
"""

import importlib.util
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from forethought.errors import MissingDependencyError

Point = tuple[int, int, int, int]
"""Where the agent stands and looks: x and z in steps of 0.25 m, quarter turns, degrees."""

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
    """Commands and replies; the task stands in it as "UNKNOWN GOAL"."""
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
