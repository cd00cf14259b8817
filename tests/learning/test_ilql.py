"""ILQL takes the turn that nobody in the data took, and a broken one does not.

The same walks as in `test_q_sft.py`: imitation ends in the pit, and the reward of the turn
comes a step behind it.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from forethought.config_ilql import ILQLConfig, ValueActingConfig
from forethought.config_parts import ComputeConfig, EnvironmentConfig, OptimizerConfig
from forethought.evaluation.evaluate import EvaluationSettings, play_policy
from forethought.policies.value_weighted import load_value_weighted
from forethought.rollouts.store import write_shard
from forethought.rollouts.world import World, open_world
from forethought.training import ilql
from tests.unit.training.conftest import ACTION_ONLY, CROSSING, crossing, small_model
from tests.unit.training.crossing import straight_on

pytestmark = pytest.mark.slow

__all__ = ["crossing", "small_model"]  # fixtures, used by name

FROM_WEST = EnvironmentConfig(CROSSING.id, options=("start=west",))
STITCHED, MISSED = 0.9, 0.1


def learn(small_model: Path, crossing: World, folder: Path, **changes: Any) -> Path:
    """Trains on 400 walks, and returns the model's folder."""
    write_shard(folder / "walks.parquet", list(straight_on(crossing, range(400))))
    config = ILQLConfig(
        model=str(small_model),
        data=str(folder / "walks.parquet"),
        output=str(folder / "run"),
        behaviour_epochs=6.0,
        epochs=16.0,
        batch_size=16,
        target_rate=0.1,
        checkpoint_every=1000,
        environment=CROSSING,
        prompt=ACTION_ONLY,
        optimizer=OptimizerConfig(learning_rate=3e-3, final_learning_rate=3e-4, epsilon=1e-8),
        compute=ComputeConfig(threads=1),
    )
    run = ilql.train_ilql(replace(config, **changes))
    return max((run / "checkpoints").iterdir()) / "model"


def success(model: Path, beta: float) -> float:
    """From the west, where the most likely token is taken."""
    policy = load_value_weighted(model, slots=4)
    policy.act_as(ValueActingConfig(beta=beta))
    world = open_world(FROM_WEST, ACTION_ONLY, default_image_size=None)
    settings = EvaluationSettings(episodes=4, max_new_tokens=12, slots=4)
    played = play_policy(policy, world, settings)
    return sum(one.success for one in played) / len(played)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="ilql"),
        pytest.param({"targets": "monte_carlo"}, id="returns"),
    ],
)
def test_it_takes_the_turn_and_imitation_does_not(
    changes: dict[str, Any], small_model: Path, crossing: World, tmp_path: Path
) -> None:
    model = learn(small_model, crossing, tmp_path, **changes)
    assert success(model, 0.0) <= MISSED
    assert success(model, 16.0) >= STITCHED


def test_without_the_next_state_it_does_not(
    small_model: Path, crossing: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reward alone comes three steps after the turn."""
    sound: Callable[..., Any] = ilql.td_targets

    def at_once(*, next_values_N: torch.Tensor, **others: Any) -> Any:
        return sound(next_values_N=torch.zeros_like(next_values_N), **others)

    monkeypatch.setattr(ilql, "td_targets", at_once)
    model = learn(small_model, crossing, tmp_path)
    assert success(model, 16.0) <= MISSED


def test_without_regression_it_does_not(
    small_model: Path, crossing: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of the loss then raises what the data do, which is imitation once more."""
    sound: Callable[..., Any] = ilql.double_q_loss

    def deaf(*, targets_N: torch.Tensor, **others: Any) -> Any:
        return sound(targets_N=torch.zeros_like(targets_N), **others)

    monkeypatch.setattr(ilql, "double_q_loss", deaf)
    model = learn(small_model, crossing, tmp_path)
    assert success(model, 16.0) <= MISSED
