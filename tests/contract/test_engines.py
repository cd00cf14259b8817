"""Training by an engine elsewhere equals training in one process, up to the order of sums."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from forethought.algorithms.dpo.config import DPOConfig
from forethought.algorithms.dpo.train import train_dpo
from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.train import train_ppo
from forethought.configs.acting import GenerationConfig
from forethought.configs.parts import (
    ComputeConfig,
    LoraConfig,
    OptimizerConfig,
    RolloutConfig,
    SamplingConfig,
)
from forethought.rollouts.store import read_shards
from forethought.runs.metrics import read_metrics
from tests.engines import BANDIT, bandit, engine_of, save_model, teach

SAMPLING = SamplingConfig(temperature=1.0, max_new_tokens=12)
ROLLOUT = RolloutConfig(num_envs=8, steps_per_iteration=16, sampling=SAMPLING)
SETTINGS: dict[str, Any] = {
    "environment": BANDIT,
    "rollout": ROLLOUT,
    "total_steps": 48,
    "batch_size": 16,
    "epochs": 1,
    "optimizer": OptimizerConfig(learning_rate=3e-3),
    "compute": ComputeConfig(threads=1),
}
LORA = LoraConfig(("language_model",), rank=4, dropout=0.0)
DPO = DPOConfig(
    **SETTINGS | {"batch_size": 8, "rollout": replace(ROLLOUT, sampling=SamplingConfig(1.0, 48))}
)
"""For a model that was taught (`teach`): of responses without the right form there are no pairs."""


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("engine") / "model", bandit())


@pytest.fixture
def engine(model: Path, tmp_path: Path) -> Generator[str]:
    with engine_of(model, tmp_path) as url:
        yield url


def ids_of(run: Path) -> list[tuple[int, ...]]:
    """Of every completion, in the order in which they were collected."""
    return [
        step.completion.token_ids
        for trajectory in read_shards(run / "trajectories")
        for step in trajectory.steps
    ]


def metric(run: Path, name: str) -> list[float]:
    return [float(value) for value in read_metrics(run / "metrics.jsonl").column(name).values]


def weights_of(run: Path, name: str) -> dict[str, Any]:
    checkpoint = max((run / "checkpoints").glob("step_*"), key=lambda p: int(p.name[5:]))
    return load_file(checkpoint / "model" / name)


@pytest.mark.parametrize(
    ("changes", "file"),
    [
        pytest.param({}, "model.safetensors", id="all weights, with a critic"),
        pytest.param({"lora": LORA}, "adapter_model.safetensors", id="adapters"),
        pytest.param(
            {"advantage": "grpo", "group_size": 4}, "model.safetensors", id="groups, no critic"
        ),
        pytest.param(
            {"rollout": replace(ROLLOUT, sampling=replace(SAMPLING, constrain_actions=True))},
            "model.safetensors",
            id="held",
        ),
    ],
)
def test_ppo_by_an_engine_equals_ppo_in_one_process(
    model: Path, engine: str, tmp_path: Path, changes: dict[str, Any], file: str
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    config = PPOConfig(model=str(model), output=str(one), **(SETTINGS | changes))
    train_ppo(config)
    train_ppo(replace(config, output=str(two), generation=GenerationConfig((engine,))))
    assert ids_of(two) == ids_of(one)
    for name in ("success_rate", "policy_loss", "gradient_norm", "entropy"):
        assert metric(two, name) == pytest.approx(metric(one, name), rel=1e-3, abs=1e-5)
    own, others = weights_of(one, file), weights_of(two, file)
    before = load_file(model / file) if file == "model.safetensors" else {}
    assert own.keys() == others.keys()
    for name, tensor in own.items():
        np.testing.assert_allclose(others[name], tensor, atol=2e-4, rtol=1e-2)
    moved = [float((own[name] - before[name]).abs().max()) for name in before]
    assert not before or max(moved) > 1e-3  # Three updates of 3e-3: it has learned something.
    assert max(metric(two, "engine_mismatch_max")) < 1e-3
    assert max(metric(two, "engine_kl")) < 1e-6
    versions = [step.policy_version for t in read_shards(two / "trajectories") for step in t.steps]
    assert versions == sorted(versions)
    assert set(versions) == {0, 1, 2}


def test_dpo_by_an_engine_equals_dpo_in_one_process(model: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    taught = teach(model, tmp_path / "taught")
    config = replace(DPO, model=str(taught), output=str(one))
    train_dpo(config)
    with engine_of(taught, tmp_path) as url:
        train_dpo(replace(config, output=str(two), generation=GenerationConfig((url,))))
    assert ids_of(two) == ids_of(one)
    assert min(metric(two, "pairs_used")) > 0
    assert metric(two, "preference_loss") == pytest.approx(metric(one, "preference_loss"), rel=1e-3)
    assert max(metric(two, "engine_kl")) < 1e-6
