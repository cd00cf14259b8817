"""What offline algorithms learn from: 400 walks on the grid of crossing roads."""

from pathlib import Path

import pytest

from forethought.rollouts.store import write_shard
from forethought.rollouts.world import World
from tests.unit.training.conftest import crossing, small_model
from tests.unit.training.crossing import straight_on

__all__ = ["crossing", "small_model"]  # fixtures, used by name


@pytest.fixture(scope="session")
def walks(tmp_path_factory: pytest.TempPathFactory, crossing: World) -> Path:
    folder = tmp_path_factory.mktemp("walks")
    write_shard(folder / "walks.parquet", list(straight_on(crossing, range(400))))
    return folder
