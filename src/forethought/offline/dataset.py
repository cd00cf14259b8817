"""Stored trajectories: which of them are learned from, as sequences of tokens, in which order; what
was recorded of how they were collected."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from forethought.configs.contract import LanguageConfig
from forethought.errors import ConfigError
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.offline.episodes import Episode, to_episode
from forethought.rollouts.seeding import is_held_out
from forethought.rollouts.store import read_earned, read_origins, read_shards
from forethought.rollouts.task import Task
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
    """Indices of the examples of the n-th update: each epoch shuffles again.

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


def require_learnable(config: LanguageConfig, task: Task) -> None:
    """Refuses held-out episodes, those of another environment, and images of another size.

    The processor scales images to what the model reads, so that nothing fails: the model learns
    from images that were drawn large and scaled down, reads those of its own size badly when
    it plays, and fails for no reason that anyone sees. Settings without data are not refused.

    Raises:
        ConfigError: any of these, or nothing to learn from.
        StorageError: there are no such data, or a shard is refused.
    """
    if config.data is not None:
        require_own("data", config.data, task)
        _require_equal_images(config.data, task)


def unlike(config: LanguageConfig, task: Task) -> str | None:
    """What a person may want to know: that the first stored prompt is not what this environment
    shows at the same seed. So it is where other options or another form of prompts were
    collected, and with data that come from elsewhere.
    """
    data = config.data
    if data is None or config.prompt.return_bins:
        return None
    first = _first(Path(data))
    if first.first_step > 0:
        return None
    (*_, shown) = task.prompter.messages(task.first_observation(first.seed))
    (*_, stored) = first.steps[0].prompt.messages
    if shown.text == stored.text:
        return None
    return (
        f"the prompts in {data} are not those that {task.id} has with these settings — where it "
        "was collected here, pass the same --environment.options and --prompt.format"
    )


def require_own(name: str, data: str, task: Task) -> None:
    """Refuses stored episodes that are not of this environment, are held out, or have no step.

    Args:
        name: of the setting that names them.
        data: a file or folder of trajectories.

    Raises:
        ConfigError: any of these.
        StorageError: there are no such data, or a shard is refused.
    """
    steps = 0
    for origin in read_origins(Path(data)):
        if is_held_out(origin.seed):
            raise ConfigError(
                f"{name}: {data} holds held-out episodes, which are there to evaluate by — "
                "of a run, name the folder trajectories in it"
            )
        if origin.environment_id != task.id:
            raise ConfigError(
                f"{name}: {data} holds episodes of {origin.environment_id}, but the run is of "
                f"{task.id} — name the environment of the data with --environment.id, or other data"
            )
        steps += origin.steps
    if not steps:
        raise ConfigError(f"{name}: {data} holds no episode with a step")


def _first(data: Path) -> Trajectory:
    return next(one for one in read_shards(data) if one.steps)


def _require_equal_images(data: str, task: Task) -> None:
    images = (message.image for message in _first(Path(data)).steps[0].prompt.messages)
    stored = next((image for image in images if image is not None), None)
    if stored is None:
        return
    seen = task.first_observation(0).image
    if seen is not None and seen.shape != stored.shape:
        height, width, _ = seen.shape
        raise ConfigError(
            f"data: {data} has images of {stored.shape[1]} × {stored.shape[0]}, but the "
            f"agent will see {width} × {height} — train with --environment.image-size "
            f"{stored.shape[0]}, or collect with {height}"
        )
