"""ILQL takes the turn that nobody in the data took, and a broken one does not."""

from pathlib import Path
from typing import Any

import pytest
import torch

from forethought.algorithms.ilql import train as ilql
from forethought.algorithms.ilql.config import ILQLConfig
from forethought.configs.acting import ValueActingConfig
from forethought.value_guided.policy import load_value_weighted
from tests.learning.breakage import distort
from tests.learning.stitching import MISSED, STITCHED, newest_model, success_from_west

pytestmark = pytest.mark.slow


def learn(settings: dict[str, Any], **changes: Any) -> Path:
    """Trains, and returns the model's folder."""
    return newest_model(ilql.train_ilql(ILQLConfig(epochs=16.0, **settings, **changes)))


def success(model: Path, beta: float) -> float:
    policy = load_value_weighted(model, slots=4)
    policy.act_as(ValueActingConfig(beta=beta))
    return success_from_west(policy)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="ilql"),
        pytest.param({"targets": "monte_carlo"}, id="returns"),
        pytest.param({"targets": "maximum", "support_min_probability": 0.05}, id="maximum"),
    ],
)
def test_it_takes_the_turn_and_imitation_does_not(
    changes: dict[str, Any], settings: dict[str, Any]
) -> None:
    model = learn(settings, **changes)
    assert success(model, 0.0) <= MISSED
    assert success(model, 16.0) >= STITCHED


def test_without_the_next_state_it_does_not(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    distort(monkeypatch, ilql, "td_targets", next_values_N=torch.zeros_like)
    assert success(learn(settings), 16.0) <= MISSED


def test_without_regression_it_does_not(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of the loss then raises what the data do, which is imitation once more."""
    distort(monkeypatch, ilql, "double_q_loss", targets_N=torch.zeros_like)
    assert success(learn(settings), 16.0) <= MISSED
