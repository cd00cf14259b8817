"""A new folder of shards: whole or absent."""

import shutil
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from forethought.durable import publish
from forethought.errors import StorageError
from forethought.rollouts.store import write_shard
from forethought.targets.reward_map import RewardMap, write_reward_map
from forethought.types import Trajectory


def write_folder(
    trajectories: Iterable[Trajectory],
    folder: Path,
    *,
    per_shard: int,
    reward_map: RewardMap | None,
    on_shard: Callable[[list[Trajectory]], object],
) -> None:
    """Writes trajectories as shards; memory holds one shard's. The folder gets its name when
    all of them are in it.

    Args:
        folder: must not be there.
        per_shard: trajectories per file, 1 or more.
        reward_map: is declared in the folder.
        on_shard: called with what each shard holds.

    Raises:
        StorageError: the folder is there, or cannot be written.
    """
    if folder.exists():
        raise StorageError(f"{folder}: is there already — name another folder")
    temporary = folder.with_name(f".{folder.name}.tmp")
    try:
        shutil.rmtree(temporary, ignore_errors=True)  # Of one who was killed.
        temporary.mkdir(parents=True)
        remaining = iter(trajectories)
        first = 0
        while chosen := list(islice(remaining, per_shard)):
            write_shard(temporary / f"episodes_{first:07d}.parquet", chosen)
            on_shard(chosen)
            first += len(chosen)
        if reward_map is not None:
            write_reward_map(temporary, reward_map)
        publish(temporary, folder)
    except OSError as error:
        raise StorageError(f"{folder}: cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
