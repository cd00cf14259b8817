"""Q-SFT takes the turn that nobody in the data took, and a broken one does not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from forethought.config_parts import ComputeConfig
from forethought.config_q_sft import ActingConfig, QSFTConfig, SupportConfig
from forethought.policies.reweighted import load_reweighted
from forethought.training import q_sft, q_sft_targets
from tests.learning.stitching import MISSED, OPTIMIZER, STITCHED, success_from_west
from tests.unit.training.conftest import ACTION_ONLY, CROSSING

pytestmark = pytest.mark.slow


def learn(small_model: Path, walks: Path, output: Path) -> Path:
    """Trains, and returns the model's folder."""
    config = QSFTConfig(
        model=str(small_model),
        data=str(walks),
        output=str(output),
        behaviour_epochs=6.0,
        epochs=16.0,
        batch_size=16,
        target_rate=0.1,
        checkpoint_every=1000,
        support=SupportConfig(min_probability=0.02),
        environment=CROSSING,
        prompt=ACTION_ONLY,
        optimizer=OPTIMIZER,
        compute=ComputeConfig(threads=1),
    )
    run = q_sft.train_q_sft(config)
    return max((run / "checkpoints").iterdir()) / "model"


def success(model: Path, acting: ActingConfig) -> float:
    policy = load_reweighted(model, slots=4)
    policy.act_as(acting)
    return success_from_west(policy)


def test_it_stitches_and_imitation_does_not(small_model: Path, walks: Path, tmp_path: Path) -> None:
    model = learn(small_model, walks, tmp_path / "run")
    assert success(model, ActingConfig(beta=0.0)) <= MISSED
    assert success(model, ActingConfig(beta=16.0)) >= STITCHED
    # The paper's β: odds change by a factor of e at most, and three of four went straight on.
    assert success(model, ActingConfig(beta=1.0, extraction="probability")) <= MISSED


def test_without_leftover_it_does_not(
    small_model: Path, walks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound: Callable[..., Any] = q_sft.likelihood_loss

    def imitation(*, targets_N: torch.Tensor, **others: Any) -> Any:
        return sound(targets_N=torch.ones_like(targets_N), **others)

    monkeypatch.setattr(q_sft, "likelihood_loss", imitation)
    model = learn(small_model, walks, tmp_path / "run")
    assert success(model, ActingConfig(beta=16.0)) <= MISSED


def test_without_the_next_state_it_does_not(
    small_model: Path, walks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound: Callable[..., Any] = q_sft_targets.bellman_targets

    def at_once(*, next_values_N: torch.Tensor, **others: Any) -> Any:
        return sound(next_values_N=torch.zeros_like(next_values_N), **others)

    monkeypatch.setattr(q_sft_targets, "bellman_targets", at_once)
    model = learn(small_model, walks, tmp_path / "run")
    assert success(model, ActingConfig(beta=16.0)) <= MISSED
