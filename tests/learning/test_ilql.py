"""ILQL takes the turn that nobody in the data took, and a broken one does not."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from forethought.config_ilql import ILQLConfig, ValueActingConfig
from forethought.config_parts import ComputeConfig
from forethought.policies.value_weighted import load_value_weighted
from forethought.training import ilql
from tests.learning.stitching import MISSED, OPTIMIZER, STITCHED, success_from_west
from tests.unit.training.conftest import ACTION_ONLY, CROSSING

pytestmark = pytest.mark.slow


def learn(small_model: Path, walks: Path, output: Path, **changes: Any) -> Path:
    """Trains, and returns the model's folder."""
    config = ILQLConfig(
        model=str(small_model),
        data=str(walks),
        output=str(output),
        behaviour_epochs=6.0,
        epochs=16.0,
        batch_size=16,
        target_rate=0.1,
        checkpoint_every=1000,
        environment=CROSSING,
        prompt=ACTION_ONLY,
        optimizer=OPTIMIZER,
        compute=ComputeConfig(threads=1),
    )
    run = ilql.train_ilql(replace(config, **changes))
    return max((run / "checkpoints").iterdir()) / "model"


def success(model: Path, beta: float) -> float:
    policy = load_value_weighted(model, slots=4)
    policy.act_as(ValueActingConfig(beta=beta))
    return success_from_west(policy)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="ilql"),
        pytest.param({"targets": "monte_carlo"}, id="returns"),
    ],
)
def test_it_takes_the_turn_and_imitation_does_not(
    changes: dict[str, Any], small_model: Path, walks: Path, tmp_path: Path
) -> None:
    model = learn(small_model, walks, tmp_path / "run", **changes)
    assert success(model, 0.0) <= MISSED
    assert success(model, 16.0) >= STITCHED


def test_without_the_next_state_it_does_not(
    small_model: Path, walks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound: Callable[..., Any] = ilql.td_targets

    def at_once(*, next_values_N: torch.Tensor, **others: Any) -> Any:
        return sound(next_values_N=torch.zeros_like(next_values_N), **others)

    monkeypatch.setattr(ilql, "td_targets", at_once)
    model = learn(small_model, walks, tmp_path / "run")
    assert success(model, 16.0) <= MISSED


def test_without_regression_it_does_not(
    small_model: Path, walks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of the loss then raises what the data do, which is imitation once more."""
    sound: Callable[..., Any] = ilql.double_q_loss

    def deaf(*, targets_N: torch.Tensor, **others: Any) -> Any:
        return sound(targets_N=torch.zeros_like(targets_N), **others)

    monkeypatch.setattr(ilql, "double_q_loss", deaf)
    model = learn(small_model, walks, tmp_path / "run")
    assert success(model, 16.0) <= MISSED
