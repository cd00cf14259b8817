"""Where learning begins: 400 walks on the crossing roads, and an imitator of a bad teacher."""

from pathlib import Path
from typing import Any

import pytest

from forethought.algorithms.sft.config import SFTConfig
from forethought.algorithms.sft.train import train_sft
from forethought.configs.parts import OptimizerConfig, PromptConfig
from forethought.rollouts.scripted import play
from forethought.rollouts.store import write_shard
from forethought.rollouts.task import Task, open_task
from tests.learning.bandit import ENVIRONMENT, ONE_THREAD, half_right
from tests.unit.algorithms.conftest import crossing, offline, small_model
from tests.unit.algorithms.crossing import straight_on

__all__ = ["crossing", "offline", "small_model"]  # fixtures, used by name


@pytest.fixture(scope="session")
def walks(tmp_path_factory: pytest.TempPathFactory, crossing: Task) -> Path:
    folder = tmp_path_factory.mktemp("walks")
    write_shard(folder / "walks.parquet", list(straight_on(crossing, range(400))))
    return folder


@pytest.fixture
def settings(offline: dict[str, Any]) -> dict[str, Any]:
    """Those that the offline algorithms share."""
    optimizer = OptimizerConfig(learning_rate=3e-3, final_learning_rate=3e-4, epsilon=1e-8)
    return offline | {
        "bc_epochs": 6.0,
        "batch_size": 16,
        "checkpoint_every": 1000,
        "optimizer": optimizer,
    }


@pytest.fixture(scope="session")
def imitator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers in the right form, with the right letter half of the time."""
    folder = tmp_path_factory.mktemp("learning")
    task = open_task(ENVIRONMENT, PromptConfig(), default_image_size=64)
    lessons = play(task.id, task.factory(), task.prompter, half_right, range(640))
    (folder / "data").mkdir()
    write_shard(folder / "data" / "lessons.parquet", list(lessons))
    return train_sft(
        SFTConfig(
            output=str(folder / "sft"),
            data=str(folder / "data"),
            environment=ENVIRONMENT,
            epochs=1.0,
            batch_size=16,
            optimizer=OptimizerConfig(learning_rate=2e-3, schedule="constant", epsilon=1e-8),
            compute=ONE_THREAD,
        )
    )
