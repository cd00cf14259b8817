"""A game, its folder in the official file tree, and all games of a folder."""

import json
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from forethought.environments.alfworld.engine import Engine, GameText
from forethought.environments.alfworld.package import OFFICIAL_GAMES, Goal, Split, TaskType
from forethought.errors import StorageError

TREE = "json_2.1.1"
"""Folder of the official tree that holds the splits."""
GAME_FILE = "game.tw-pddl"
TRAJECTORY_FILE = "traj_data.json"
PROBLEM_FILE = "initial_state.pddl"

GENERATOR = "forethought"
"""In `traj_data.json` of games that are not the official ones."""


@dataclass(frozen=True)
class Game:
    """Everything that an episode needs."""

    goal: Goal
    room: int
    trial: str
    """Folder of the game; unique in its split."""
    text: GameText
    is_official: bool

    @property
    def folder(self) -> str:
        """As in the official tree: "pick_heat_then_place_in_recep-Mug-None-Cabinet-7/trial_…"."""
        goal = self.goal
        return f"{goal.task_type}-{goal.thing}-None-{goal.aim}-{self.room}/{self.trial}"


def write_game(root: Path, split: Split, game: Game, walkthrough: tuple[str, ...]) -> Path:
    """Writes a game's folder as the package reads it; the game file last, since a folder
    without one is no game. Returns the folder.

    Raises:
        StorageError: the disk refuses.
    """
    goal, text = game.goal, game.text
    trajectory = {
        "task_id": game.trial,
        "task_type": str(goal.task_type),
        "generator": GENERATOR,
        "scene": {"floor_plan": f"FloorPlan{game.room}", "scene_num": game.room},
        "pddl_params": {
            "object_target": goal.thing,
            "parent_target": goal.place,
            "toggle_target": goal.lamp,
            "mrecep_target": "",
            "object_sliced": False,
        },
    }
    played = {
        "pddl_domain": text.domain,
        "grammar": text.grammar,
        "pddl_problem": text.problem,
        "solvable": True,
        "walkthrough": list(walkthrough),
    }
    folder = root / TREE / split / game.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / TRAJECTORY_FILE).write_text(json.dumps(trajectory, indent=2), encoding="utf-8")
        (folder / PROBLEM_FILE).write_text(text.problem, encoding="utf-8")
        temporary = folder / f"{GAME_FILE}.part"
        temporary.write_text(json.dumps(played), encoding="utf-8")
        temporary.replace(folder / GAME_FILE)
    except OSError as error:
        raise StorageError(f"game {folder}: cannot be written: {error}") from error
    return folder


def read_game(folder: Path) -> Game:
    """Raises:
    StorageError: a file is missing or is not what it should be.
    """
    try:
        trajectory = _json(folder / TRAJECTORY_FILE)
        played = _json(folder / GAME_FILE)
        parameters = trajectory["pddl_params"]
        task_type = TaskType(trajectory["task_type"])
        place, lamp = parameters["parent_target"] or "", parameters["toggle_target"] or ""
        is_look = task_type is TaskType.LOOK
        return Game(
            goal=Goal(
                task_type,
                parameters["object_target"],
                "" if is_look else place,
                lamp if is_look else "",
            ),
            room=int(folder.parent.name.rpartition("-")[2]),
            trial=folder.name,
            text=GameText(played["pddl_domain"], played["pddl_problem"], played["grammar"]),
            is_official=trajectory.get("generator") != GENERATOR,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(
            f"game {folder}: not in ALFWorld's format ({type(error).__name__}: {error})"
        ) from error


def find_games(root: Path, split: Split) -> tuple[Path, ...]:
    """Folders of all playable games of a split, in alphabetical order, by the package's own
    rules: not those with movable receptacles or sliced things, and only what is solvable.

    Args:
        root: what ALFWORLD_DATA names, or the folder with the splits in it.

    Raises:
        StorageError: there is none.
    """
    base = root / TREE / split if (root / TREE).is_dir() else root / split
    found = tuple(
        path.parent
        for path in sorted(base.glob(f"*/*/{GAME_FILE}"))
        if "movable" not in str(path) and "Sliced" not in str(path) and _is_playable(path)
    )
    if not found:
        raise StorageError(
            f"{root} has no games of split {split} — expected "
            f"{TREE}/{split}/TASK/TRIAL/{GAME_FILE}; "
            "make some with: forethought data alfworld --output DIR"
        )
    return found


def _is_playable(game_file: Path) -> bool:
    """Whether the package would play it, by the files' text: parsing thousands takes minutes."""
    try:
        if '"solvable": true' not in game_file.read_text(encoding="utf-8"):
            return False
        trajectory = game_file.with_name(TRAJECTORY_FILE).read_text(encoding="utf-8")
    except OSError:
        return False
    return any(f'"task_type": "{kind}"' in trajectory for kind in TaskType)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StorageError(f"{path}: cannot be read: {error}") from error


@dataclass(frozen=True)
class FolderGames:
    """Those of a folder, in alphabetical order."""

    root: Path
    split: Split

    @property
    def is_official(self) -> bool:
        """Whether the folder's first game is one of the published ones."""
        return _is_official(self.root, self.split)

    def __len__(self) -> int:
        return len(_listed(self.root, self.split))

    def game(self, index: int, engine: Engine) -> Game:
        """Game number `index`, read from its folder; the engine is not used."""
        return read_game(_listed(self.root, self.split)[index])


@lru_cache(maxsize=8)
def _is_official(root: Path, split: Split) -> bool:
    return read_game(_listed(root, split)[0]).is_official


@lru_cache(maxsize=8)
def _listed(root: Path, split: Split) -> tuple[Path, ...]:
    """The folder is looked through once in a process."""
    found = find_games(root, split)
    expected = OFFICIAL_GAMES[split].total
    if len(found) != expected and read_game(found[0]).is_official:
        warnings.warn(
            f"{root} has {len(found)} games of {split}, the official data {expected}",
            stacklevel=3,
        )
    return found
