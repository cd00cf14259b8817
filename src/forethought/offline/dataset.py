"""Stored trajectories: which of them are learned from, as sequences of tokens, in which order."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from forethought.errors import ConfigError
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.offline.episodes import Episode, to_episode
from forethought.rollouts.store import read_earned, read_shards
from forethought.types import Earned, Trajectory


def load_episodes(
    data: str,
    policy: HuggingFacePolicy,
    is_known: Callable[[Episode], bool],
    *,
    on_episode: Callable[[], object] | None = None,
) -> list[Episode]:
    """The data as sequences of tokens.

    Args:
        is_known: whether an episode has anything from which values could be learned.
        on_episode: called after every episode, for a progress bar.

    Raises:
        ConfigError: no episode has.
        StorageError: a shard is refused.
    """
    episodes: list[Episode] = []
    for trajectory in stored(Path(data)):
        episodes.append(to_episode(trajectory, policy))
        if on_episode is not None:
            on_episode()
    require_known(episodes, is_known, data)
    return episodes


def require_known(
    episodes: Sequence[Episode], is_known: Callable[[Episode], bool], data: str
) -> None:
    """Refuses data from which no value could be learned.

    Raises:
        ConfigError: no episode is known.
    """
    if not any(is_known(episode) for episode in episodes):
        raise ConfigError(
            f"data: {data} holds no step whose outcome is known — expected episodes that "
            "came to their end"
        )


def stored(path: Path) -> Iterator[Trajectory]:
    """The trajectories of a file or folder that have steps; crashed episodes are none."""
    return (one for one in read_shards(path) if one.steps and one.failure is None)


def stored_earned(path: Path) -> Iterator[Earned]:
    """What these trajectories earned, in the same order; their texts are not read."""
    return (one for one in read_earned(path) if one.rewards and one.failure is None)


def shuffled_batch(
    *, seeds: Sequence[int], examples: int, batch_size: int, number: int
) -> list[int]:
    """Indices of the examples of the n-th update: each epoch shuffles anew.

    A function of the seeds alone, so a resumed run sees what it would have seen. A batch may
    span two epochs.

    Args:
        seeds: of the shuffling; the epoch's number is added to them.
        examples: how many there are, 1 or more.
        number: n, from 0.
    """
    first = number * batch_size
    positions = range(first, first + batch_size)
    shuffled = {
        epoch: np.random.default_rng([*seeds, epoch]).permutation(examples)
        for epoch in {position // examples for position in positions}
    }
    return [int(shuffled[p // examples][p % examples]) for p in positions]
