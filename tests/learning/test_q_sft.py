"""Q-SFT takes the turn that nobody in the data took, and a broken one does not."""

from pathlib import Path
from typing import Any

import pytest
import torch

from forethought.algorithms.q_sft import targets as q_sft_targets
from forethought.algorithms.q_sft import train as q_sft
from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.configs.acting import ActingConfig, SupportConfig
from forethought.value_guided.policy import load_reweighted
from tests.learning.breakage import distort
from tests.learning.stitching import MISSED, STITCHED, newest_model, success_from_west

pytestmark = pytest.mark.slow


def learn(settings: dict[str, Any]) -> Path:
    """Trains, and returns the model's folder."""
    config = QSFTConfig(epochs=16.0, support=SupportConfig(min_probability=0.02), **settings)
    return newest_model(q_sft.train_q_sft(config))


def success(model: Path, acting: ActingConfig) -> float:
    policy = load_reweighted(model, slots=4)
    policy.act_as(acting)
    return success_from_west(policy)


def test_it_stitches_and_imitation_does_not(settings: dict[str, Any]) -> None:
    model = learn(settings)
    assert success(model, ActingConfig(beta=0.0)) <= MISSED
    assert success(model, ActingConfig(beta=16.0)) >= STITCHED
    # The paper's β: odds change by a factor of e at most, and three of four went straight on.
    assert success(model, ActingConfig(beta=1.0, policy_extraction="probability")) <= MISSED


def test_without_leftover_it_does_not(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    distort(monkeypatch, q_sft, "likelihood_loss", targets_N=torch.ones_like)
    assert success(learn(settings), ActingConfig(beta=16.0)) <= MISSED


def test_without_the_next_state_it_does_not(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    distort(monkeypatch, q_sft_targets, "bellman_targets", next_values_N=torch.zeros_like)
    assert success(learn(settings), ActingConfig(beta=16.0)) <= MISSED
