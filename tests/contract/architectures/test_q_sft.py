"""Q-SFT trains, is taken up again and acts with every architecture, with adapters, too."""

from dataclasses import replace
from typing import Any

import pytest

from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.algorithms.q_sft.train import train_q_sft
from forethought.configs.parts import LoraConfig
from forethought.rollouts.task import Task
from forethought.value_guided.policy import load_reweighted
from tests.contract.architectures.builders import Checkpoint
from tests.contract.architectures.runs import assert_acts, lora_of, train_and_take_up


@pytest.mark.parametrize("has_adapters", [False, True], ids=["whole", "lora"])
def test_both_phases_and_acting(
    checkpoint: Checkpoint, task: Task, offline: dict[str, Any], has_adapters: bool
) -> None:
    config = QSFTConfig(
        return_min=-20.0,
        return_max=20.0,
        backup_beta=4.0,
        lora=lora_of(checkpoint) if has_adapters else LoraConfig(),
        **offline,
    )
    model = train_and_take_up(train_q_sft, config, last=4, loss="likelihood_loss")
    policy = load_reweighted(model, slots=2)
    policy.act_as(replace(policy.acting, beta=8.0))
    assert_acts(policy, task)
