"""Offline ArCHer trains, is taken up again and acts with every architecture, with adapters, too."""

import shutil
from typing import Any

import pytest

from forethought.config_archer import ArcherConfig
from forethought.config_parts import LoraConfig
from forethought.policies.huggingface import load_policy
from forethought.rollouts.world import World
from forethought.runs.metrics import read_metrics
from forethought.training.archer import train_archer
from tests.contract.architectures.builders import Checkpoint
from tests.contract.architectures.runs import assert_acts, lora_of


@pytest.mark.parametrize("has_adapters", [False, True], ids=["whole", "lora"])
def test_all_phases_and_acting(
    checkpoint: Checkpoint, world: World, offline: dict[str, Any], has_adapters: bool
) -> None:
    config = ArcherConfig(lora=lora_of(checkpoint) if has_adapters else LoraConfig(), **offline)
    run = train_archer(config)
    losses = read_metrics(run / "metrics.jsonl").column("actor_loss").values
    assert len(losses) == 2
    shutil.rmtree(run / "checkpoints/step_6")
    train_archer(config, existing="resume")
    again = read_metrics(run / "metrics.jsonl").column("actor_loss").values
    assert again.tolist() == losses.tolist()
    assert_acts(load_policy(str(run / "checkpoints/step_6/model"), slots=2), world)
