"""Preferences teach the one-step environment; the same preferences the wrong way round do not.

From the imitator that PPO starts from: right half of the time, in the right form.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forethought.algorithms.dpo import pairing
from forethought.algorithms.dpo.config import DPOConfig
from forethought.algorithms.dpo.train import train_dpo
from forethought.configs.parts import OptimizerConfig
from forethought.targets.pairs import Pair
from tests.learning.bandit import CHANCE, ENVIRONMENT, ONE_THREAD, ROLLOUT, success_in_training

pytestmark = pytest.mark.slow

BAR = 0.6
GENTLE = OptimizerConfig(learning_rate=6e-5, schedule="linear")
"""At three times this rate one seed in three ends at nothing, and the last bits of a processor's
sums decide how far another one comes."""


def learn(imitator: Path, output: Path, **changes: Any) -> tuple[float, float]:
    """Trains, and returns the success in training at the beginning and at the end."""
    config = DPOConfig(
        model=str(imitator),
        output=str(output),
        environment=ENVIRONMENT,
        total_steps=32 * 128,
        loss_type="sigmoid",
        beta=0.3,
        consistency_coefficient=0.0,
        pairing="matched",
        group_size=8,
        pairs_per_state=16,
        epochs=4,
        batch_size=8,
        rollout=ROLLOUT,
        optimizer=GENTLE,
        compute=ONE_THREAD,
    )
    return success_in_training(train_dpo(replace(config, **changes)))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="dpo, matched"),
        pytest.param({"pairing": "trajectory"}, id="dpo, trajectories"),
        pytest.param({"pairing": "branch"}, id="dpo, branched"),
        pytest.param(
            {"loss_type": "apw", "consistency_coefficient": 0.1, "total_steps": 16 * 128},
            id="apw and apc",
        ),
    ],
)
def test_it_learns(imitator: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    before, after = learn(imitator, tmp_path / "dpo", **changes)
    assert before < BAR - CHANCE
    assert after >= BAR


def test_preferences_the_wrong_way_round_unlearn(
    imitator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = pairing.make_pairs

    def flipped(*args: Any, **kwargs: Any) -> list[Pair]:
        return [Pair(chosen=pair.rejected, rejected=pair.chosen) for pair in sound(*args, **kwargs)]

    monkeypatch.setattr(pairing, "make_pairs", flipped)
    assert learn(imitator, tmp_path / "dpo")[1] < CHANCE
