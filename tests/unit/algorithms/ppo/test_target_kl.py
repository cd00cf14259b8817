"""`target_kl`: an iteration's updates stop where the policy has moved far enough."""

from pathlib import Path
from typing import Any

import pytest

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.train import train_ppo
from forethought.errors import ConfigError
from tests.contract.architectures.conftest import fresh_accelerate
from tests.contract.architectures.runs import metrics_of
from tests.durability.comparison import largest_difference
from tests.unit.algorithms.conftest import crossing_ppo
from tests.unit.algorithms.ppo.conftest import change_samples

__all__ = ["fresh_accelerate"]  # a fixture that every test uses


def trained(model: Path, run: Path, target: float | None, **changes: Any) -> Path:
    """Two iterations of eight steps; up to six updates in each."""
    config = crossing_ppo(model, run, batch_size=4, epochs=3, target_kl=target, **changes)
    return train_ppo(config)


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model succeeds nowhere: advantages are made up."""
    change_samples(monkeypatch, lambda number, sample: sample._replace(advantage=(-1.0) ** number))


def test_updates_stop_behind_the_first_batch_that_is_too_far(
    small_model: Path, tmp_path: Path
) -> None:
    free = metrics_of(trained(small_model, tmp_path / "free", None))
    assert [one["updates"] for one in free] == [6, 6]
    # The first batch meets the weights that acted: no distance. The second one meets others.
    near = metrics_of(trained(small_model, tmp_path / "near", 1e-12))
    assert [one["updates"] for one in near] == [2, 2]
    assert 0 < near[0]["approximate_kl"] < free[0]["approximate_kl"]


def test_a_distance_that_is_not_reached_changes_nothing(small_model: Path, tmp_path: Path) -> None:
    free = trained(small_model, tmp_path / "free", None)
    far = trained(small_model, tmp_path / "far", 1e6)
    assert metrics_of(free) == metrics_of(far)
    assert largest_difference(free, far) == 0


@pytest.mark.parametrize("target", [0.0, -0.1])
def test_no_distance_is_refused(target: float) -> None:
    with pytest.raises(ConfigError, match=r"target_kl.*above 0, or null"):
        PPOConfig(target_kl=target)
