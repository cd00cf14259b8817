"""Short runs of any of the models, and what they left behind."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forethought.algorithms.ppo.config import PPOConfig
from forethought.configs.contract import OfflineConfig
from forethought.configs.parts import (
    ComputeConfig,
    EnvironmentConfig,
    LoraConfig,
    OptimizerConfig,
    RolloutConfig,
    SamplingConfig,
)
from forethought.evaluation.evaluate import EvaluationSettings, play_policy
from forethought.generation.contract import Policy
from forethought.rollouts.task import Task
from forethought.runs.metrics import read_metrics
from tests.contract.architectures.builders import Checkpoint

OPTIMIZER = OptimizerConfig(learning_rate=3e-3, schedule="constant")


def environment_of(checkpoint: Checkpoint) -> EnvironmentConfig:
    if checkpoint.sees:
        return EnvironmentConfig(id="NumberLine", image_size=48)
    return EnvironmentConfig(id="Bandit")


def ppo(checkpoint: Checkpoint, output: Path, *, iterations: int = 1, **changes: Any) -> PPOConfig:
    compute = {"threads": 1} | changes.pop("compute", {})
    return PPOConfig(
        model=checkpoint.folder,
        output=str(output),
        total_steps=8 * iterations,
        epochs=changes.pop("epochs", 1),
        batch_size=8,
        checkpoint_every=1,
        environment=environment_of(checkpoint),
        rollout=RolloutConfig(
            num_envs=4,
            steps_per_iteration=8,
            sampling=SamplingConfig(temperature=1.0, max_new_tokens=12),
        ),
        optimizer=OPTIMIZER,
        compute=ComputeConfig(**compute),
        **changes,
    )


def lora_of(checkpoint: Checkpoint) -> LoraConfig:
    return LoraConfig(components=checkpoint.components, rank=4, alpha=8)


def metrics_of(run: Path) -> list[dict[str, float]]:
    """One table per iteration; what has no value is NaN."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    tables = [json.loads(line) for line in lines]
    return [{k: math.nan if v is None else v for k, v in table.items()} for table in tables]


def train_and_take_up(
    train: Callable[..., Path], config: OfflineConfig, *, last: int, loss: str
) -> Path:
    """Trains, does the last phase's two updates again from the checkpoint before them, finds the
    same losses, and returns the model's folder.

    Args:
        last: number of the run's last update.
        loss: name of the last phase's metric.
    """
    run = train(config)
    losses = read_metrics(run / "metrics.jsonl").column(loss).values
    assert len(losses) == 2
    shutil.rmtree(run / f"checkpoints/step_{last}")
    train(config, existing="resume")
    again = read_metrics(run / "metrics.jsonl").column(loss).values
    assert again.tolist() == losses.tolist()
    return run / f"checkpoints/step_{last}/model"


def assert_acts(policy: Policy, task: Task) -> None:
    settings = EvaluationSettings(
        episodes=2, sampling=SamplingConfig(max_new_tokens=4, temperature=1.0), num_envs=2
    )
    played = play_policy(policy, task, settings)
    assert all(episode.failure is None for episode in played)
