"""Q-SFT takes the turn that nobody in the data took, and a broken one does not.

On the grid of crossing roads three of four go straight on into the pit; from the west nobody
reached the goal. Imitation ends in the pit. What is needed is the value of the turn, learned
from those who came from the north, at a state that both share.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from forethought.config_parts import ComputeConfig, EnvironmentConfig, OptimizerConfig
from forethought.config_q_sft import ActingConfig, QSFTConfig, SupportConfig
from forethought.evaluation.evaluate import EvaluationSettings, play_policy
from forethought.policies.reweighted import load_reweighted
from forethought.rollouts.store import write_shard
from forethought.rollouts.world import World, open_world
from forethought.training import q_sft, q_sft_targets
from tests.unit.training.conftest import ACTION_ONLY, CROSSING, crossing, small_model
from tests.unit.training.crossing import straight_on

pytestmark = pytest.mark.slow

__all__ = ["crossing", "small_model"]  # fixtures, used by name

FROM_WEST = EnvironmentConfig(CROSSING.id, options=("start=west",))
STITCHED, MISSED = 0.9, 0.1


def learn(small_model: Path, crossing: World, folder: Path, **changes: Any) -> Path:
    """Trains on 400 walks, and returns the model's folder."""
    write_shard(folder / "walks.parquet", list(straight_on(crossing, range(400))))
    config = QSFTConfig(
        model=str(small_model),
        data=str(folder / "walks.parquet"),
        output=str(folder / "run"),
        behaviour_epochs=6.0,
        epochs=16.0,
        batch_size=16,
        target_rate=0.1,
        checkpoint_every=1000,
        support=SupportConfig(min_probability=0.02),
        environment=CROSSING,
        prompt=ACTION_ONLY,
        optimizer=OptimizerConfig(learning_rate=3e-3, final_learning_rate=3e-4, epsilon=1e-8),
        compute=ComputeConfig(threads=1),
    )
    run = q_sft.train_q_sft(replace(config, **changes))
    return max((run / "checkpoints").iterdir()) / "model"


def success(model: Path, acting: ActingConfig) -> float:
    """From the west, where the most likely token is taken."""
    policy = load_reweighted(model, slots=4)
    policy.act_as(acting)
    world = open_world(FROM_WEST, ACTION_ONLY, default_image_size=None)
    settings = EvaluationSettings(episodes=4, max_new_tokens=12, slots=4)
    played = play_policy(policy, world, settings)
    return sum(one.success for one in played) / len(played)


def test_it_stitches_and_imitation_does_not(
    small_model: Path, crossing: World, tmp_path: Path
) -> None:
    model = learn(small_model, crossing, tmp_path)
    assert success(model, ActingConfig(beta=0.0)) <= MISSED
    assert success(model, ActingConfig(beta=16.0)) >= STITCHED
    # The paper's β: odds change by a factor of e at most, and three of four went straight on.
    assert success(model, ActingConfig(beta=1.0, extraction="probability")) <= MISSED


def test_without_leftover_it_does_not(
    small_model: Path, crossing: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound: Callable[..., Any] = q_sft.likelihood_loss

    def imitation(*, targets_N: torch.Tensor, **others: Any) -> Any:
        return sound(targets_N=torch.ones_like(targets_N), **others)

    monkeypatch.setattr(q_sft, "likelihood_loss", imitation)
    model = learn(small_model, crossing, tmp_path)
    assert success(model, ActingConfig(beta=16.0)) <= MISSED


def test_without_the_next_state_it_does_not(
    small_model: Path, crossing: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reward alone comes three steps after the turn."""
    sound: Callable[..., Any] = q_sft_targets.bellman_targets

    def at_once(*, next_values_N: torch.Tensor, **others: Any) -> Any:
        return sound(next_values_N=torch.zeros_like(next_values_N), **others)

    monkeypatch.setattr(q_sft_targets, "bellman_targets", at_once)
    model = learn(small_model, crossing, tmp_path)
    assert success(model, ActingConfig(beta=16.0)) <= MISSED
