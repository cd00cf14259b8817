"""Q-Transformer takes the turn that nobody in the data took, and a broken one does not."""

from typing import Any

import pytest
import torch

from forethought.algorithms.q_transformer import train as q_transformer
from forethought.algorithms.q_transformer.config import QTransformerConfig
from forethought.generation.huggingface import load_policy
from tests.learning.breakage import distort
from tests.learning.stitching import MISSED, STITCHED, newest_model, success_from_west

pytestmark = pytest.mark.slow


def success(settings: dict[str, Any]) -> float:
    """Trains, and plays the best token of each dimension."""
    own = {name: value for name, value in settings.items() if name != "bc_epochs"}
    run = q_transformer.train_q_transformer(QTransformerConfig(epochs=16.0, **own))
    return success_from_west(load_policy(str(newest_model(run)), slots=4))


def test_it_takes_the_turn(settings: dict[str, Any]) -> None:
    assert success(settings) >= STITCHED


def test_without_the_next_state_it_does_not(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    distort(monkeypatch, q_transformer, "q_transformer_targets", next_best_N=torch.zeros_like)
    assert success(settings) <= MISSED


def test_with_the_wrong_sign_it_does_not(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    distort(
        monkeypatch, q_transformer, "q_transformer_loss", targets_N=lambda targets_N: 1 - targets_N
    )
    assert success(settings) <= MISSED
