"""Games in small rooms, and a cache of their own."""

from dataclasses import replace
from pathlib import Path

import pytest

from forethought.durable import CACHE_VARIABLE
from forethought.environments.alfworld.engine import Engine, GameText
from forethought.environments.alfworld.games import Game, write_game
from forethought.environments.alfworld.generator import solve
from forethought.environments.alfworld.package import (
    Goal,
    TaskType,
    domain_text,
    grammar_text,
    load_room,
)
from forethought.environments.alfworld.scene import (
    Receptacle,
    Scene,
    Thing,
    goal_words,
    write_problem,
)


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Translations of these tests, in no person's cache."""
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("cache")
    patch.setenv(CACHE_VARIABLE, str(folder))
    patch.delenv("ALFWORLD_DATA", raising=False)
    return folder


def receptacle(name: str, place: int) -> Receptacle:
    kind, _, number = name.partition(" ")
    ending = "|SinkBasin" if kind == "SinkBasin" else ""
    first = "Sink" if kind == "SinkBasin" else kind
    return Receptacle(f"{first}|+00.0{number}|+01.00|+00.00{ending}", kind, (place, 0, 0, 30))


def small_game(task_type: TaskType) -> Game:
    """A kitchen of eight receptacles: two drawers share a point; two mugs and a desk lamp.

    A mug is on the counter, one in the fridge; a spoon lies in each drawer, a lamp on the table.
    """
    points = {
        "CounterTop 1": 0,
        "Drawer 1": 1,
        "Drawer 2": 1,
        "SinkBasin 1": 2,
        "Microwave 1": 3,
        "Fridge 1": 4,
        "Shelf 1": 5,
        "SideTable 1": 6,
    }
    by_name = {name: receptacle(name, point) for name, point in points.items()}
    things = tuple(
        Thing(f"{kind}|+00.{number:02d}|+01.00|+00.50", kind, by_name[place].id)
        for number, (kind, place) in enumerate(
            [
                ("Mug", "CounterTop 1"),
                ("Mug", "Fridge 1"),
                ("Spoon", "Drawer 2"),
                ("Spoon", "Drawer 1"),
                ("DeskLamp", "SideTable 1"),
            ]
        )
    )
    scene = Scene(load_room(1), tuple(by_name.values()), things, (9, 9, 0, 30))
    goal = {
        TaskType.LOOK: Goal(TaskType.LOOK, "Mug", "", "DeskLamp"),
        TaskType.PICK2: Goal(TaskType.PICK2, "Spoon", "SideTable", ""),
        TaskType.CLEAN: Goal(TaskType.CLEAN, "Spoon", "CounterTop", ""),
    }.get(task_type, Goal(task_type, "Mug", "Shelf", ""))
    trial = f"trial_T_{task_type.label}"
    text = GameText(
        domain_text(),
        write_problem(trial, scene, goal),
        grammar_text().replace("UNKNOWN GOAL", goal_words(goal)[0]),
    )
    return Game(goal, 1, trial, text, is_official=False)


@pytest.fixture(scope="session")
def engine() -> Engine:
    return Engine()


@pytest.fixture(scope="session")
def games(tmp_path_factory: pytest.TempPathFactory, engine: Engine) -> Path:
    """One game of each kind in each split."""
    root = tmp_path_factory.mktemp("games")
    for kind in TaskType:
        game = small_game(kind)
        walkthrough = solve(game, engine)
        assert walkthrough is not None
        for split in ("train", "valid_seen", "valid_unseen"):
            write_game(root, split, replace(game, trial=f"{game.trial}_{split}"), walkthrough)
    return root
