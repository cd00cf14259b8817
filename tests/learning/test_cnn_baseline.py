"""The network without words learns where to look, and with a wrong loss does not."""

from pathlib import Path

import pytest
import torch
from cnn_baseline.config import CNNConfig

from cnn_baseline import train as cnn
from forethought.configs.parts import (
    ComputeConfig,
    EnvironmentConfig,
    OptimizerConfig,
    RolloutConfig,
    SamplingConfig,
)
from forethought.runs.metrics import read_metrics
from tests.entry_points import declare_on_path
from tests.learning.breakage import distort

pytestmark = pytest.mark.slow

RANDOM, BAR = 0.25, 0.9


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example, as an installer leaves it."""
    declare_on_path(tmp_path, monkeypatch, "cnn", "cnn_baseline:ALGORITHM")


def success_after_training(output: Path) -> float:
    """Of the last iteration, in which actions are still drawn."""
    config = CNNConfig(
        output=str(output),
        total_steps=1536,
        hidden_size=64,
        epochs=4,
        batch_size=32,
        clip=0.2,
        environment=EnvironmentConfig("tests.unit.algorithms.corners:Corners"),
        rollout=RolloutConfig(
            num_envs=32, steps_per_iteration=128, sampling=SamplingConfig(temperature=1.0)
        ),
        optimizer=OptimizerConfig(learning_rate=1e-3, schedule="constant"),
        compute=ComputeConfig(threads=1),
    )
    run = cnn.train_cnn(config)
    return float(read_metrics(run / "metrics.jsonl").column("success_rate").values[-1])


def test_it_finds_the_bright_corner(tmp_path: Path) -> None:
    assert success_after_training(tmp_path / "run") > BAR


def test_with_the_sign_wrong_it_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distort(monkeypatch, cnn, "clipped_policy_loss", advantages=torch.neg)
    assert success_after_training(tmp_path / "run") < RANDOM
