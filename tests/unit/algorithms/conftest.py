"""The grid of crossing roads, a very small model that can talk in it, and stored episodes."""

from pathlib import Path
from typing import Any

import pytest
import torch

from forethought.algorithms.ppo.config import PPOConfig
from forethought.configs.parts import (
    ComputeConfig,
    EnvironmentConfig,
    OptimizerConfig,
    PromptConfig,
    RolloutConfig,
    SamplingConfig,
)
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.tiny import TinySize, make_tiny
from forethought.rollouts.store import write_shard
from forethought.rollouts.task import Task, open_task
from tests.unit.algorithms.crossing import MOVES, straight_on

CROSSING = EnvironmentConfig("tests.unit.algorithms.crossing:Crossing")
ACTION_ONLY = PromptConfig(format="action_only")
SMALL = TinySize(hidden_size=32, intermediate_size=64, layers=2, heads=2, vision_hidden_size=16)


def crossing_ppo(model: Path, output: Path, **others: Any) -> PPOConfig:
    """Two iterations of eight steps, one update each."""
    settings = {"total_steps": 16, "batch_size": 8, "epochs": 1} | others
    settings.setdefault("compute", ComputeConfig(threads=1))
    return PPOConfig(
        model=str(model),
        output=str(output),
        rollout=RolloutConfig(
            num_envs=4,
            steps_per_iteration=8,
            sampling=SamplingConfig(max_new_tokens=8, temperature=1.0),
        ),
        environment=CROSSING,
        prompt=ACTION_ONLY,
        **settings,
    )


@pytest.fixture(scope="session")
def crossing() -> Task:
    return open_task(CROSSING, ACTION_ONLY, default_image_size=None)


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory, crossing: Task) -> Path:
    """Knows the words of the grid, and nothing else yet."""
    torch.set_num_threads(1)
    trajectories = list(straight_on(crossing, range(4)))
    texts = [
        text
        for trajectory in trajectories
        for step in trajectory.steps
        for text in (step.prompt.messages[0].text, step.completion.text)
    ]
    texts += [f'{{\n"action": "{move}"\n}}' for move in MOVES] * 2
    folder = tmp_path_factory.mktemp("small")
    HuggingFacePolicy(make_tiny(texts, seed=0, size=SMALL), slots=1).save(folder)
    return folder


@pytest.fixture(scope="session")
def walks(tmp_path_factory: pytest.TempPathFactory, crossing: Task) -> Path:
    """Eighty stored episodes."""
    folder = tmp_path_factory.mktemp("walks")
    write_shard(folder / "walks.parquet", list(straight_on(crossing, range(80))))
    return folder


@pytest.fixture
def offline(small_model: Path, walks: Path, tmp_path: Path) -> dict[str, Any]:
    """Settings that the offline algorithms share."""
    return {
        "model": str(small_model),
        "data": str(walks),
        "output": str(tmp_path / "run"),
        "batch_size": 8,
        "polyak_tau": 0.1,
        "environment": CROSSING,
        "prompt": ACTION_ONLY,
        "optimizer": OptimizerConfig(learning_rate=3e-3, final_learning_rate=0.0, epsilon=1e-8),
        "compute": ComputeConfig(threads=1),
    }
