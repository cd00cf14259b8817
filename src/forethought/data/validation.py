"""Validation of a data set: every shard and every trajectory, each fault with its place."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from forethought.errors import ConfigError, StorageError
from forethought.rollouts.shard_files import copies_among, is_copy
from forethought.rollouts.soundness import problems_of
from forethought.rollouts.store import find_shards, stream_shard
from forethought.targets.reward_map import RewardMap, read_reward_map, require_in_range
from forethought.types import Trajectory


class Fault(NamedTuple):
    """One thing that is wrong."""

    shard: str
    trajectory: int | None
    """Its number in the shard; None where the shard itself cannot be read (any further)."""
    message: str

    @property
    def line(self) -> str:
        """For persons: where, and what."""
        if self.trajectory is None:
            return self.message  # Of the store, which names the file.
        return f"{self.shard}: trajectory {self.trajectory}: {self.message}"


@dataclass(frozen=True)
class Validation:
    """What was looked at, and what was found."""

    shards: int
    trajectories: int
    steps: int
    faults: tuple[Fault, ...]

    def to_json(self) -> str:
        """For programs."""
        content = {
            "shards": self.shards,
            "trajectories": self.trajectories,
            "steps": self.steps,
            "faults": [fault._asdict() for fault in self.faults],
        }
        return json.dumps(content, indent=2) + "\n"


def validate(source: Path, *, gamma: float) -> Validation:
    """Checks seals and schema versions, and that every record is possible.

    A shard that cannot be read is one fault, and the others are looked at nevertheless; a
    trajectory counts for its first fault alone.

    Args:
        source: a shard, or a folder of shards.
        gamma: γ in [0, 1], per environment step, at which returns must lie in the reward map
            that the folder declares.

    Raises:
        StorageError: there is no such data set.
        ConfigError, StorageError: the declared reward map is none.
    """
    paths = find_shards(source)
    reward_map = read_reward_map(paths[0].parent)
    faults = [
        Fault(str(path), None, f"{path}: {is_copy(other)}")
        for path, other in copies_among(paths).items()
    ]
    trajectories = steps = 0
    for path in paths:
        try:
            for number, trajectory in enumerate(stream_shard(path)):
                trajectories, steps = trajectories + 1, steps + len(trajectory.steps)
                problem = first_problem(trajectory, reward_map, gamma=gamma)
                if problem is not None:
                    faults.append(Fault(str(path), number, problem))
        except StorageError as error:
            faults.append(Fault(str(path), None, str(error)))
    return Validation(len(paths), trajectories, steps, tuple(faults))


def first_problem(
    trajectory: Trajectory, reward_map: RewardMap | None, *, gamma: float
) -> str | None:
    """What is wrong with a trajectory, or None.

    Args:
        reward_map: what its returns must lie in; None: any.
        gamma: γ in [0, 1], per environment step.
    """
    for problem in problems_of(trajectory):
        return problem
    if reward_map is None:
        return None
    try:
        require_in_range(trajectory, reward_map, gamma=gamma, name="reward map")
    except ConfigError as error:
        return str(error)
    return None
