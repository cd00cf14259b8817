"""Whether stored pictures look as those that the agent will see."""

from pathlib import Path

from forethought.config import SFTConfig
from forethought.config_dpo import DPOConfig
from forethought.config_file import LanguageConfig, OfflineConfig
from forethought.errors import ConfigError
from forethought.rollouts.store import read_shards
from forethought.rollouts.world import World
from forethought.types import Image


def require_equal_pictures(config: LanguageConfig, world: World) -> None:
    """Refuses data whose pictures have another size than the world's.

    The processor scales either to what the model reads, so that nothing fails: the model learns
    from pictures that were drawn large and scaled down, reads those of its own size badly when
    it plays, and fails for no reason that anyone sees. Settings without data are not refused.

    Raises:
        ConfigError: the sizes differ.
        StorageError: there are no such data, or their first shard is refused.
    """
    if not isinstance(config, SFTConfig | DPOConfig | OfflineConfig) or config.data is None:
        return
    stored = _first_picture(Path(config.data), world.id)
    if stored is None:
        return
    environment = world.factory()
    try:
        seen = environment.restart(0).image
    finally:
        environment.close()
    if seen is not None and seen.shape != stored.shape:
        height, width, _ = seen.shape
        raise ConfigError(
            f"data: {config.data} has pictures of {stored.shape[1]} × {stored.shape[0]}, but the "
            f"agent will see {width} × {height} — train with --environment.image-size "
            f"{stored.shape[0]}, or collect with {height}"
        )


def _first_picture(data: Path, world_id: str) -> Image | None:
    first = next((one for one in read_shards(data) if one.steps), None)
    if first is None or first.environment_id != world_id:
        return None
    pictures = (message.image for message in first.steps[0].prompt.messages)
    return next((picture for picture in pictures if picture is not None), None)
