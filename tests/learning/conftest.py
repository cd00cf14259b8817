"""What offline algorithms learn from: 400 walks on the grid of crossing roads."""

from pathlib import Path
from typing import Any

import pytest

from forethought.config_parts import OptimizerConfig
from forethought.rollouts.store import write_shard
from forethought.rollouts.world import World
from tests.unit.training.conftest import crossing, offline, small_model
from tests.unit.training.crossing import straight_on

__all__ = ["crossing", "offline", "small_model"]  # fixtures, used by name


@pytest.fixture(scope="session")
def walks(tmp_path_factory: pytest.TempPathFactory, crossing: World) -> Path:
    folder = tmp_path_factory.mktemp("walks")
    write_shard(folder / "walks.parquet", list(straight_on(crossing, range(400))))
    return folder


@pytest.fixture
def settings(offline: dict[str, Any]) -> dict[str, Any]:
    """Those that the offline algorithms share."""
    optimizer = OptimizerConfig(learning_rate=3e-3, final_learning_rate=3e-4, epsilon=1e-8)
    return offline | {
        "behaviour_epochs": 6.0,
        "batch_size": 16,
        "checkpoint_every": 1000,
        "optimizer": optimizer,
    }
