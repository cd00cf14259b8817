"""Stored data from which nothing can be learned."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.algorithms.q_sft.context import load_offline
from forethought.errors import ConfigError
from forethought.generation.huggingface import load_policy
from forethought.offline.dataset import load_episodes
from forethought.rollouts.store import write_shard
from forethought.rollouts.task import Task
from forethought.types import EnvironmentFailure
from tests.unit.algorithms.crossing import straight_on


@pytest.fixture
def crashed(crossing: Task, tmp_path: Path) -> str:
    """Data of one episode, which broke off."""
    (walk,) = straight_on(crossing, range(1))
    write_shard(
        tmp_path / "none.parquet", [replace(walk, steps=(), failure=EnvironmentFailure.CRASH)]
    )
    return str(tmp_path / "none.parquet")


def test_no_known_step(crashed: str, small_model: Path) -> None:
    policy = load_policy(str(small_model), slots=1)
    with pytest.raises(ConfigError, match=r"none\.parquet holds no step whose outcome is known"):
        load_episodes(crashed, policy, lambda _: True)


def test_no_known_step_and_a_range_that_is_declared(
    crashed: str, offline: dict[str, Any], crossing: Task
) -> None:
    """Nothing is fitted to the data, so it is not the map that refuses them."""
    config = replace(QSFTConfig(**offline), data=crashed, return_min=-6.0, return_max=0.0)
    policy = load_policy(config.model, slots=1)
    with pytest.raises(ConfigError, match=r"none\.parquet holds no step whose outcome is known"):
        load_offline(config, crossing, policy)
