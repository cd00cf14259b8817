"""Rounds of whole episodes, and the environment steps that a run may take."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from forethought.algorithms.dpo.config import DPOConfig
from forethought.algorithms.dpo.train import schedule_span, train_dpo
from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.train import train_ppo
from forethought.configs.parts import ComputeConfig, OptimizerConfig, RolloutConfig, SamplingConfig
from forethought.rollouts.store import read_shard
from forethought.runs.metrics import read_metrics
from forethought.training.optim import ScheduleSpan
from tests.unit.algorithms.conftest import ACTION_ONLY, CROSSING

FOUR = RolloutConfig(
    num_envs=4,
    steps_per_iteration=4,
    sampling=SamplingConfig(temperature=1.0, max_new_tokens=8),
    on_invalid="penalize",
)
"""Episodes take several steps, so that a round of four episodes takes more than four steps."""


@pytest.fixture
def without_critic(small_model: Path, tmp_path: Path) -> PPOConfig:
    return PPOConfig(
        model=str(small_model),
        output=str(tmp_path / "run"),
        total_steps=60,
        advantage="rloo",
        group_size=2,
        batch_size=4,
        epochs=1,
        checkpoint_every=1,
        environment=CROSSING,
        prompt=ACTION_ONLY,
        rollout=FOUR,
        optimizer=OptimizerConfig(learning_rate=1e-3, final_learning_rate=1e-4),
        compute=ComputeConfig(threads=1),
    )


@pytest.fixture
def config(small_model: Path, tmp_path: Path) -> DPOConfig:
    return DPOConfig(
        model=str(small_model),
        output=str(tmp_path / "run"),
        total_steps=200,
        loss_type="sigmoid",
        pairing="branch",
        branches=2,
        horizon=2,
        checkpoint_every=1,
        environment=CROSSING,
        prompt=ACTION_ONLY,
        rollout=FOUR,
        optimizer=OptimizerConfig(learning_rate=1e-3, final_learning_rate=1e-4),
        compute=ComputeConfig(threads=1),
    )


def test_no_round_begins_that_cannot_keep_within_the_steps(config: DPOConfig) -> None:
    log = read_metrics(train_dpo(config) / "metrics.jsonl")
    taken = np.cumsum(log.column("environment_steps").values)
    assert 2 <= len(taken) < config.iterations
    assert all(taken[:-1] <= 196)
    assert taken[-1] > 196


def test_nor_does_a_round_of_groups(without_critic: PPOConfig) -> None:
    run = train_ppo(without_critic)
    log = read_metrics(run / "metrics.jsonl")
    shards = [read_shard(path) for path in sorted((run / "trajectories").iterdir())]
    steps = [sum(len(one.steps) for one in shard) for shard in shards]
    taken = np.cumsum(steps)
    assert log.column("environment_steps").values.tolist() == steps
    assert 2 <= len(taken) < without_critic.iterations
    assert all(taken[:-1] <= 56)
    assert taken[-1] > 56
    whole = load_file(run / f"checkpoints/step_{len(steps)}/model/model.safetensors")
    shutil.rmtree(run / f"checkpoints/step_{len(steps)}")
    train_ppo(without_critic, existing="resume")
    again = load_file(run / f"checkpoints/step_{len(steps)}/model/model.safetensors")
    assert all(torch.equal(whole[name], again[name]) for name in whole)


def test_resumed_rounds_equal_those_that_were_never_stopped(config: DPOConfig) -> None:
    run = train_dpo(config)
    said = (run / "metrics.jsonl").read_text(encoding="utf-8")
    last = max(run.glob("checkpoints/step_*"), key=lambda path: int(path.name.split("_")[1]))
    whole = load_file(last / "model/model.safetensors")
    shutil.rmtree(last)
    train_dpo(config, existing="resume")
    resumed = load_file(last / "model/model.safetensors")
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert (run / "metrics.jsonl").read_text(encoding="utf-8") == said


def test_the_schedule_goes_by_the_steps_that_were_taken() -> None:
    config = DPOConfig(total_steps=40, group_size=2, rollout=FOUR)
    assert schedule_span(config, iteration=1, played=10, steps=6) == ScheduleSpan(2.5, 4.0)
    stored = DPOConfig(data="somewhere", epochs=3)
    assert schedule_span(stored, iteration=1, played=0, steps=0) == ScheduleSpan(1, 2)


def test_a_round_begins_where_it_fits() -> None:
    config = DPOConfig(total_steps=40, group_size=2, rollout=FOUR)
    assert [config.has_next_iteration(2, played) for played in (0, 36, 37)] == [True, True, False]
    stored = DPOConfig(data="somewhere", epochs=3)
    assert [stored.has_next_iteration(passes, 0) for passes in (2, 3)] == [True, False]
