"""PPO learns the one-step environment, and a broken PPO does not.

A model imitates a teacher who is right half of the time: it answers in the right form, with
the right letter half of the time. Only the reward can tell it which half.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from forethought.algorithms.ppo import samples, updates
from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.train import train_ppo
from forethought.configs.parts import OptimizerConfig
from forethought.runs.metrics import read_metrics
from forethought.targets.checks import FloatArray
from tests.learning.bandit import CHANCE, ENVIRONMENT, ONE_THREAD, ROLLOUT, success_in_training

pytestmark = pytest.mark.slow

MISSED, BAR = 0.7, 0.85


def learn(imitator: Path, output: Path, **changes: Any) -> tuple[float, float]:
    """Trains, and returns the success in training at the beginning and at the end."""
    config = PPOConfig(
        model=str(imitator),
        output=str(output),
        environment=ENVIRONMENT,
        total_steps=12 * 128,
        batch_size=64,
        epochs=2,
        value_coefficient=0.01,
        value_clip=None,
        rollout=ROLLOUT,
        optimizer=OptimizerConfig(learning_rate=5e-4, schedule="linear"),
        compute=ONE_THREAD,
    )
    return success_in_training(train_ppo(replace(config, **changes)))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"ratio": "step"}, id="one ratio per step"),
        pytest.param({"ratio": "token"}, id="one ratio per token"),
        pytest.param({"thought_weight": 1.0}, id="the plain sum"),
    ],
)
def test_it_learns(imitator: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    before, after = learn(imitator, tmp_path / "ppo", **changes)
    assert before < MISSED
    assert after >= BAR


@pytest.mark.parametrize("advantage", ["rloo", "grpo", "dr_grpo", "reinforce_plus_plus", "gigpo"])
def test_it_learns_without_a_critic(imitator: Path, tmp_path: Path, advantage: str) -> None:
    """An iteration has 16 starts instead of 128: smaller steps, and more of them."""
    before, after = learn(
        imitator,
        tmp_path / "ppo",
        advantage=advantage,
        group_size=8,
        total_steps=20 * 128,
        optimizer=OptimizerConfig(learning_rate=2e-4, schedule="linear"),
    )
    assert before < MISSED
    assert after >= BAR


def test_the_action_alone_does_not_learn_what_the_thoughts_decide(
    imitator: Path, tmp_path: Path
) -> None:
    """With λ = 0 no reward reaches the thoughts, and the action repeats the letter in them."""
    assert learn(imitator, tmp_path / "ppo", thought_weight=0.0)[1] < MISSED


@pytest.mark.parametrize("use", ["loss", "reward"])
def test_it_learns_while_held_loosely_to_its_start(
    imitator: Path, tmp_path: Path, use: str
) -> None:
    before, after = learn(imitator, tmp_path / "ppo", kl_coefficient=0.01, kl_use=use)
    assert before < MISSED
    assert after >= BAR


@pytest.mark.parametrize(("use", "coefficient"), [("loss", 10.0), ("reward", 1.0)])
def test_held_tightly_it_stays_what_it_was(
    imitator: Path, tmp_path: Path, use: str, coefficient: float
) -> None:
    """Adam's first steps are as long as ever; the model is then brought back."""
    before, after = learn(imitator, tmp_path / "ppo", kl_coefficient=coefficient, kl_use=use)
    assert before / 2 < after < MISSED
    log = read_metrics(tmp_path / "ppo" / "metrics.jsonl")
    assert float(log.column("reference_kl").values[-1]) < 0.05


def test_a_wrong_sign_unlearns(
    imitator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = samples.normalize_advantages

    def negated(advantages: FloatArray) -> FloatArray:
        return -sound(advantages)

    monkeypatch.setattr(samples, "normalize_advantages", negated)
    assert learn(imitator, tmp_path / "ppo")[1] <= CHANCE


def test_advantages_of_other_steps_teach_nothing(
    imitator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = samples.normalize_advantages

    def rolled(advantages: FloatArray) -> FloatArray:
        return np.roll(sound(advantages), 1)

    monkeypatch.setattr(samples, "normalize_advantages", rolled)
    assert learn(imitator, tmp_path / "ppo")[1] < MISSED


def test_a_mask_that_leaves_out_the_answer_teaches_nothing(
    imitator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = updates.thought_scaled_logprobs

    def without_answer(**arguments: Any) -> torch.Tensor:
        return sound(**arguments) * 0.0

    monkeypatch.setattr(updates, "thought_scaled_logprobs", without_answer)
    assert learn(imitator, tmp_path / "ppo")[1] < MISSED
