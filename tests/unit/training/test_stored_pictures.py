"""Stored pictures must be as large as those that the agent will see."""

from itertools import islice
from pathlib import Path

import pytest

from forethought.config import PPOConfig, SFTConfig
from forethought.config_parts import EnvironmentConfig, PromptConfig
from forethought.config_q_sft import QSFTConfig
from forethought.errors import ConfigError
from forethought.rollouts.scripted import expert_answer, play
from forethought.rollouts.store import write_shard
from forethought.rollouts.world import World, open_world
from forethought.training.sft import train_sft
from forethought.training.stored_pictures import require_equal_pictures

NUMBER_LINE = EnvironmentConfig("NumberLine")


def world_of(size: int | None, name: str = "NumberLine") -> World:
    return open_world(EnvironmentConfig(name), PromptConfig(), default_image_size=size)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two episodes of pictures of 48 × 48."""
    world = world_of(48)
    episodes = play(world.id, world.factory(), world.prompter, expert_answer("thoughts"), range(2))
    write_shard(tmp_path / "data.parquet", list(islice(episodes, 2)))
    return tmp_path / "data.parquet"


def test_pictures_of_another_size_are_refused(data: Path, tmp_path: Path) -> None:
    message = r"has pictures of 48 × 48, but the agent will see 64 × 64 — train with .*-size 48, or"
    for kind in (SFTConfig, QSFTConfig):
        config = kind(data=str(data), environment=NUMBER_LINE)
        with pytest.raises(ConfigError, match=message):
            require_equal_pictures(config, world_of(64))
        require_equal_pictures(config, world_of(48))
    with pytest.raises(ConfigError, match=message):
        train_sft(SFTConfig(data=str(data), output=str(tmp_path / "run"), environment=NUMBER_LINE))


def test_what_is_not_compared(data: Path, tmp_path: Path) -> None:
    """No data, data of another world, which is refused elsewhere, and data without steps."""
    for config in (SFTConfig(), PPOConfig()):
        require_equal_pictures(config, world_of(64))
    stored = SFTConfig(data=str(data), environment=NUMBER_LINE)
    require_equal_pictures(stored, world_of(64, "EZPoints"))
    write_shard(tmp_path / "empty.parquet", [])
    nothing = SFTConfig(data=str(tmp_path / "empty.parquet"), environment=NUMBER_LINE)
    require_equal_pictures(nothing, world_of(64))
