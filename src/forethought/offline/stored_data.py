"""Whether stored episodes are such as a run may learn from, and look as those it will play."""

from pathlib import Path

from forethought.configs.contract import LanguageConfig
from forethought.errors import ConfigError
from forethought.rollouts.seeding import is_held_out
from forethought.rollouts.store import read_origins, read_shards
from forethought.rollouts.task import Task
from forethought.types import Trajectory


def require_learnable(config: LanguageConfig, world: Task) -> None:
    """Refuses held-out episodes, those of another world, and pictures of another size.

    The processor scales pictures to what the model reads, so that nothing fails: the model learns
    from pictures that were drawn large and scaled down, reads those of its own size badly when
    it plays, and fails for no reason that anyone sees. Settings without data are not refused.

    Raises:
        ConfigError: any of these, or nothing to learn from.
        StorageError: there are no such data, or a shard is refused.
    """
    if config.data is not None:
        require_own("data", config.data, world)
        _require_equal_pictures(config.data, world)


def unlike(config: LanguageConfig, world: Task) -> str | None:
    """What a person may want to know: that the first stored prompt is not what this world shows
    at the same seed. So it is where other options or another form of prompts were collected, and
    with data that come from elsewhere.
    """
    data = config.data
    if data is None or config.prompt.return_bins:
        return None
    first = _first(Path(data))
    if first.first_step > 0:
        return None
    (*_, shown) = world.prompter.messages(world.first_observation(first.seed))
    (*_, stored) = first.steps[0].prompt.messages
    if shown.text == stored.text:
        return None
    return (
        f"the prompts in {data} are not those that {world.id} has with these settings — where it "
        "was collected here, pass the same --environment.options and --prompt.format"
    )


def require_own(name: str, data: str, world: Task) -> None:
    """Refuses stored episodes that are not of this world, are held out, or have no step.

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
                f"{name}: {data} holds held-out episodes, which are there to judge by — "
                "of a run, name the folder trajectories in it"
            )
        if origin.environment_id != world.id:
            raise ConfigError(
                f"{name}: {data} holds episodes of {origin.environment_id}, but the run is of "
                f"{world.id} — name the world of the data with --environment.id, or other data"
            )
        steps += origin.steps
    if not steps:
        raise ConfigError(f"{name}: {data} holds no episode with a step")


def _first(data: Path) -> Trajectory:
    return next(one for one in read_shards(data) if one.steps)


def _require_equal_pictures(data: str, world: Task) -> None:
    pictures = (message.image for message in _first(Path(data)).steps[0].prompt.messages)
    stored = next((picture for picture in pictures if picture is not None), None)
    if stored is None:
        return
    seen = world.first_observation(0).image
    if seen is not None and seen.shape != stored.shape:
        height, width, _ = seen.shape
        raise ConfigError(
            f"data: {data} has pictures of {stored.shape[1]} × {stored.shape[0]}, but the "
            f"agent will see {width} × {height} — train with --environment.image-size "
            f"{stored.shape[0]}, or collect with {height}"
        )
