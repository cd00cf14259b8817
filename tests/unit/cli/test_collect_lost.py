"""`forethought collect` from an environment that fails."""

from pathlib import Path

import pytest

from forethought.agents.collecting import CollectionSettings
from forethought.cli.collect import Collect, collect
from forethought.configs.parts import EnvironmentConfig
from forethought.environments.bandit import Bandit
from forethought.environments.contract import Transition
from forethought.errors import EnvironmentUnusableError


class Fails(Bandit):
    """No action can be taken."""

    def step(self, action: str) -> Transition:
        raise OSError("no such device")


def test_a_collection_without_an_episode_is_an_error(tmp_path: Path) -> None:
    config = EnvironmentConfig(id=f"{__name__}:Fails")
    settings = CollectionSettings(str(tmp_path / "data"), episodes=2, environment=config)
    with pytest.raises(EnvironmentUnusableError, match=r"\(2 failed\) — .forethought play .*Fails"):
        collect(Collect(settings))
