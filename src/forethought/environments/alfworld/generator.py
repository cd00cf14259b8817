"""Generated games: number n of a split is a function of the seed, on every machine.

Each is drawn, played by the expert, and drawn again where that fails or takes longer than
an episode may; what is left can be solved by what an agent can know.
"""

import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from forethought.durable import cache_folder
from forethought.environments.alfworld.engine import Engine, GameText
from forethought.environments.alfworld.expert import advise
from forethought.environments.alfworld.games import (
    GAME_FILE,
    TREE,
    FolderGames,
    Game,
    write_game,
)
from forethought.environments.alfworld.grammar import TASK_MARK
from forethought.environments.alfworld.notes import Exchange, Notes
from forethought.environments.alfworld.package import (
    OFFICIAL_GAMES,
    SPLITS,
    Goal,
    Split,
    TaskType,
    data_folder,
    domain_text,
    grammar_text,
    is_held_out,
    load_room,
    rooms_of,
)
from forethought.environments.alfworld.scene import furnish, goal_words, pairs_in, write_problem
from forethought.errors import ConfigError

VERSION = 1
"""Version of the drawing: raised whenever a seed would give another game."""

LIMIT_STEPS = 50
"""Commands in which the expert must solve a game."""

MAX_ATTEMPTS = 200
"""Drawings of one game before something must be wrong."""


@dataclass(frozen=True)
class Draw:
    """Which game of which set."""

    seed: int
    split: Split
    index: int
    attempt: int = 0


class Solved(NamedTuple):
    """A game that is known to be solvable."""

    game: Game
    walkthrough: tuple[str, ...]
    """The commands by which the expert solved it."""


def generate_game(seed: int, split: Split, index: int, engine: Engine) -> Solved:
    """Number `index` of a split: the first drawing that the expert solves.

    Which drawing that was is kept in the cache, so the second time costs milliseconds.

    Args:
        engine: on which the expert plays; what it plays now is lost.
    """
    path = cache_folder() / "alfworld" / "drawn" / f"{VERSION}_{seed}_{split}_{index}.json"
    known = _recall(path)
    if known is not None:
        attempt, walkthrough = known
        return Solved(draw_game(Draw(seed, split, index, attempt)), walkthrough)
    for attempt in range(MAX_ATTEMPTS):
        game = draw_game(Draw(seed, split, index, attempt))
        walkthrough = solve(game, engine)
        if walkthrough is not None:
            _remember(path, attempt, walkthrough)
            return Solved(game, walkthrough)
    raise RuntimeError(f"no game {index} of {split} in {MAX_ATTEMPTS} drawings (seed {seed})")


def draw_game(draw: Draw) -> Game:
    """Draws a game, which may turn out too long to be solved in an episode."""
    task_type = task_types_of(draw.split)[draw.index % OFFICIAL_GAMES[draw.split].total]
    entropy = [VERSION, draw.seed, SPLITS.index(draw.split), draw.index, draw.attempt]
    randomness = np.random.default_rng(entropy)
    rooms = possible_rooms(draw.split, task_type)
    room = load_room(rooms[int(randomness.integers(len(rooms)))])
    goals = goals_in(room.number, draw.split, task_type)
    goal = goals[int(randomness.integers(len(goals)))]
    scene = furnish(room, goal, randomness)
    words = goal_words(goal)
    said = words[int(randomness.integers(len(words)))]
    trial = f"trial_G{draw.seed}_{draw.split}_{draw.index:05d}_{draw.attempt:03d}"
    return Game(
        goal=goal,
        room=room.number,
        trial=trial,
        text=GameText(
            domain=domain_text(),
            problem=write_problem(f"plan_{trial}", scene, goal),
            grammar=grammar_text().replace(TASK_MARK, said),
        ),
        is_official=False,
    )


def solve(game: Game, engine: Engine, limit_steps: int = LIMIT_STEPS) -> tuple[str, ...] | None:
    """The commands by which the expert solves the game; None where it does not in time, or
    where the game is won before it begins."""
    notes = Notes.of([Exchange(None, engine.start(game.text))])
    commands: list[str] = []
    if engine.won:
        return None
    while not engine.won:
        if len(commands) == limit_steps:
            return None
        command = advise(game.goal, notes, engine.commands).action
        commands.append(command)
        notes = notes.after(Exchange(command, engine.step(command)))
    return tuple(commands)


@cache
def task_types_of(split: Split) -> tuple[TaskType, ...]:
    """The kinds of the split's games, in a fixed order, as often as in the official split:
    any stretch of them has about the same shares."""
    shares = OFFICIAL_GAMES[split].counts
    total = OFFICIAL_GAMES[split].total
    # Each kind is spread evenly over the split; a tie goes to the earlier kind.
    places = [
        ((copy + 0.5) / number * total, order, kind)
        for order, (kind, number) in enumerate(shares.items())
        for copy in range(number)
    ]
    return tuple(kind for _, _, kind in sorted(places))


@cache
def possible_rooms(split: Split, task_type: TaskType) -> tuple[int, ...]:
    """Rooms of the split in which there is such a task."""
    return tuple(number for number in rooms_of(split) if goals_in(number, split, task_type))


@cache
def goals_in(room: int, split: Split, task_type: TaskType) -> tuple[Goal, ...]:
    """Tasks of this kind that a room allows, of the pairs that belong to the split."""
    unseen = split == "valid_unseen"
    goals = pairs_in(load_room(room), task_type)
    return tuple(goal for goal in goals if is_held_out(goal.thing, goal.aim) == unseen)


def _recall(path: Path) -> tuple[int, tuple[str, ...]] | None:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        return int(known["attempt"]), tuple(map(str, known["walkthrough"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(path: Path, attempt: int, walkthrough: tuple[str, ...]) -> None:
    """Best effort, as all that is cached."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps({"attempt": attempt, "walkthrough": walkthrough}))
        temporary.replace(path)


GENERATED_GAMES: dict[Split, int] = {"train": 3000, "valid_seen": 200, "valid_unseen": 200}
"""How many games each split has where none are given."""


class GameSource(Protocol):
    """All games of a split, by number."""

    @property
    def is_official(self) -> bool:
        """Whether the games are the published ones."""
        ...

    def __len__(self) -> int: ...

    def game(self, index: int, engine: Engine) -> Game:
        """Args:
        engine: a generated game is tried out on it, and what it plays now is lost.
        """
        ...


@dataclass(frozen=True)
class GeneratedGames:
    """The generator's, with seed 0: those that `forethought data alfworld` writes."""

    split: Split
    seed: int = 0

    @property
    def is_official(self) -> bool:
        """Never."""
        return False

    def __len__(self) -> int:
        return GENERATED_GAMES[self.split]

    def game(self, index: int, engine: Engine) -> Game:
        """Game number `index`, drawn and solved on the engine where it is not cached."""
        return generate_game(self.seed, self.split, index, engine).game


def open_games(folder: str | None, split: Split) -> GameSource:
    """The games of a folder; by default those of ALFWORLD_DATA where that is set, else the
    generator's.

    Raises:
        StorageError: the folder holds no games of this split.
    """
    named = folder or data_folder()
    if not named:
        return GeneratedGames(split)
    source = FolderGames(Path(named), split)
    len(source)
    return source


_TRIAL = re.compile(r"trial_G(\d+)_[a-z_]+_(\d+)_\d+$")

BATCH = 20
"""Games that a process makes between two reports."""


class Written(NamedTuple):
    """One game that was made."""

    split: Split
    task: str
    """ "Pick", "Look", …"""
    steps: int
    """Commands in which the expert solves it."""


def present_games(root: Path, split: Split, seed: int) -> set[int]:
    """Numbers of the games that are there already, whole.

    Raises:
        ConfigError: there are games of another seed, or none of ours, in the split's folder.
    """
    present: set[int] = set()
    for path in (root / TREE / split).glob(f"*/*/{GAME_FILE}"):
        match = _TRIAL.search(path.parent.name)
        if match is None or int(match.group(1)) != seed:
            raise ConfigError(
                f"{root} holds the game {path.parent.name}, which is not of seed {seed} — "
                "name another --output"
            )
        present.add(int(match.group(2)))
    return present


def write_games(
    root: Path, seed: int, split: Split, indices: list[int], *, workers: int
) -> Iterator[Written]:
    """Makes these games and writes their folders, in any order.

    Args:
        workers: processes; 0 works in this one.
    """
    if workers == 0:
        yield from _write_batch(root, seed, split, indices)
        return
    batches = [indices[first : first + BATCH] for first in range(0, len(indices), BATCH)]
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        futures = [pool.submit(_write_batch, root, seed, split, batch) for batch in batches]
        for future in as_completed(futures):
            yield from future.result()
    finally:
        pool.shutdown(cancel_futures=True)  # an error is raised now, not after the last game


def _write_batch(root: Path, seed: int, split: Split, indices: list[int]) -> list[Written]:
    engine = Engine()
    written: list[Written] = []
    for index in indices:
        game, walkthrough = generate_game(seed, split, index, engine)
        write_game(root, split, game, walkthrough)
        written.append(Written(split, game.goal.task_type.label, len(walkthrough)))
    engine.close()
    return written


def default_workers() -> int:
    """As many processes as this one may use processors."""
    return len(os.sched_getaffinity(0))
