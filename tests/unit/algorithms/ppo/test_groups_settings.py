"""Which groups may be asked for."""

from dataclasses import replace
from typing import Any

import pytest

from forethought.algorithms.ppo.config import PPOConfig
from forethought.errors import ConfigError


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            {"group_size": 2}, "group_size is 2 — expected 1 with advantage gae", id="critic"
        ),
        pytest.param(
            {"advantage": "rloo"}, "group_size is 1 — expected 2 or more with advantage rloo"
        ),
        pytest.param({"advantage": "grpo"}, "2 or more with advantage grpo"),
        pytest.param({"advantage": "dr_grpo"}, "2 or more with advantage dr_grpo"),
        pytest.param({"advantage": "gigpo"}, "2 or more with advantage gigpo"),
        pytest.param(
            {"advantage": "rloo", "group_size": 3},
            r"group_size is 3 — expected a divisor of rollout.num_envs \(64\)",
            id="no divisor",
        ),
        pytest.param(
            {"advantage": "reinforce_plus_plus", "group_size": 0}, "a divisor", id="no episodes"
        ),
        pytest.param(
            {"step_advantage_weight": -1.0}, "step_advantage_weight is -1.0", id="weight below 0"
        ),
    ],
)
def test_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(PPOConfig(), **changes)


@pytest.mark.parametrize(
    ("advantage", "group_size", "has_critic"),
    [
        ("gae", 1, True),
        ("rloo", 2, False),
        ("grpo", 64, False),
        ("reinforce_plus_plus", 1, False),
        ("reinforce_plus_plus", 8, False),
    ],
)
def test_accepted(advantage: Any, group_size: int, has_critic: bool) -> None:
    config = PPOConfig(advantage=advantage, group_size=group_size)
    assert config.has_critic == has_critic
