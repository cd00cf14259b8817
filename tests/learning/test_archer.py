"""Offline ArCHer takes the turn that pays where imitation does not, and a broken one does not.

The walks of `test_q_sft.py`: at the crossing three of four go on into the pit, from the west all
do. What is needed is the value of the turn, learned from those who came from the north, and a
policy that imitates them there.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from forethought.config_archer import ArcherConfig
from forethought.config_parts import ComputeConfig, EnvironmentConfig, OptimizerConfig
from forethought.evaluation.evaluate import EvaluationSettings, play_policy
from forethought.policies.huggingface import load_policy
from forethought.rollouts.store import write_shard
from forethought.rollouts.world import World, open_world
from forethought.training import archer, utterances
from tests.unit.training.conftest import ACTION_ONLY, CROSSING, crossing, small_model
from tests.unit.training.crossing import straight_on

pytestmark = pytest.mark.slow

__all__ = ["crossing", "small_model"]  # fixtures, used by name

FROM_WEST = EnvironmentConfig(CROSSING.id, options=("start=west",))
STITCHED, MISSED = 0.9, 0.1


def learn(small_model: Path, crossing: World, folder: Path, **changes: Any) -> Path:
    """Trains on 400 walks, and returns the model's folder."""
    write_shard(folder / "walks.parquet", list(straight_on(crossing, range(400))))
    config = ArcherConfig(
        model=str(small_model),
        data=str(folder / "walks.parquet"),
        output=str(folder / "run"),
        behaviour_epochs=6.0,
        critic_epochs=6.0,
        actor_epochs=4.0,
        batch_size=16,
        beta=8.0,
        target_rate=0.1,
        checkpoint_every=1000,
        environment=CROSSING,
        prompt=ACTION_ONLY,
        optimizer=OptimizerConfig(learning_rate=3e-3, final_learning_rate=3e-4, epsilon=1e-8),
        compute=ComputeConfig(threads=1),
    )
    run = archer.train_archer(replace(config, **changes))
    steps = {int(one.name.removeprefix("step_")): one for one in (run / "checkpoints").iterdir()}
    return steps[max(steps)] / "model"


def success(model: Path) -> float:
    """From the west, where the most likely token is taken."""
    policy = load_policy(str(model), slots=4)
    world = open_world(FROM_WEST, ACTION_ONLY, default_image_size=None)
    settings = EvaluationSettings(episodes=4, max_new_tokens=12, slots=4)
    played = play_policy(policy, world, settings)
    return sum(one.success for one in played) / len(played)


def test_it_takes_the_turn(small_model: Path, crossing: World, tmp_path: Path) -> None:
    assert success(learn(small_model, crossing, tmp_path)) >= STITCHED


def test_imitation_does_not(small_model: Path, crossing: World, tmp_path: Path) -> None:
    """The same three phases, all answers alike in the last one."""
    model = learn(small_model, crossing, tmp_path, beta=0.0, critic_epochs=0.1)
    assert success(model) <= MISSED


def test_without_the_next_state_it_does_not(
    small_model: Path, crossing: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reward alone comes a step behind the turn."""
    sound: Callable[..., Any] = utterances.td_targets

    def at_once(*, next_values_N: torch.Tensor, **others: Any) -> Any:
        return sound(next_values_N=torch.zeros_like(next_values_N), **others)

    monkeypatch.setattr(utterances, "td_targets", at_once)
    assert success(learn(small_model, crossing, tmp_path)) <= MISSED


def test_with_the_advantage_turned_round_it_does_not(
    small_model: Path, crossing: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound: Callable[..., Any] = archer.advantage_weights

    def turned(*, advantages_U: torch.Tensor, **others: Any) -> Any:
        return sound(advantages_U=-advantages_U, **others)

    monkeypatch.setattr(archer, "advantage_weights", turned)
    assert success(learn(small_model, crossing, tmp_path)) <= MISSED
