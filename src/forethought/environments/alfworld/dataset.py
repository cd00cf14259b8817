"""Generated games on the disk, in the official file tree: many at a time, and resumable."""

import os
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from forethought.environments.alfworld.engine import Engine
from forethought.environments.alfworld.games import GAME_FILE, TREE, write_game
from forethought.environments.alfworld.generator import generate_game
from forethought.environments.alfworld.tasks import Split
from forethought.errors import ConfigError

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
        pool.shutdown(cancel_futures=True)  # an error is told now, not behind the last game


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
