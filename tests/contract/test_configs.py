"""Every file in configs/ is read, and its head says how it is used."""

from pathlib import Path

import pytest

from forethought.config_file import ALGORITHMS, load_any_config
from forethought.rollouts.world import open_world

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in CONFIGS])
def test_a_config(path: Path) -> None:
    config = load_any_config(path)
    algorithm = next(name for name, kind in ALGORITHMS.items() if kind is type(config))
    command = f"#   forethought train {algorithm} --config configs/{path.name}\n"
    assert command in path.read_text(encoding="utf-8")
    open_world(config.environment, config.prompt, default_image_size=64)
