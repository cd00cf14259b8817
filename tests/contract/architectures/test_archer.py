"""Offline ArCHer trains, is taken up again and acts with every architecture, with adapters, too."""

from typing import Any

import pytest

from forethought.algorithms.archer.config import ArcherConfig
from forethought.algorithms.archer.train import train_archer
from forethought.configs.parts import LoraConfig
from forethought.generation.huggingface import load_policy
from forethought.rollouts.task import Task
from tests.contract.architectures.builders import Checkpoint
from tests.contract.architectures.runs import assert_acts, lora_of, train_and_take_up


@pytest.mark.parametrize("has_adapters", [False, True], ids=["whole", "lora"])
def test_all_phases_and_acting(
    checkpoint: Checkpoint, task: Task, offline: dict[str, Any], has_adapters: bool
) -> None:
    config = ArcherConfig(lora=lora_of(checkpoint) if has_adapters else LoraConfig(), **offline)
    model = train_and_take_up(train_archer, config, last=6, loss="actor_loss")
    assert_acts(load_policy(str(model), slots=2), task)
