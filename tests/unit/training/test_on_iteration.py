"""A callback sees every iteration and may stop the run, which then resumes as if never stopped."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forethought.algorithms.archer.config import ArcherConfig
from forethought.algorithms.archer.train import train_archer
from forethought.algorithms.dpo.config import DPOConfig
from forethought.algorithms.dpo.train import train_dpo
from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.train import train_ppo
from forethought.algorithms.sft.config import SFTConfig
from forethought.algorithms.sft.train import train_sft
from forethought.configs.parts import (
    ComputeConfig,
    OptimizerConfig,
    RolloutConfig,
    SamplingConfig,
)
from forethought.runs.run_folder import RunFolder
from forethought.training.run import calling
from tests.unit.algorithms.conftest import ACTION_ONLY, CROSSING

FOUR = RolloutConfig(
    num_envs=4,
    steps_per_iteration=4,
    sampling=SamplingConfig(temperature=1.0, max_new_tokens=8),
    on_invalid="penalize",
)
Train = Callable[..., Path]


@pytest.fixture
def config(request: pytest.FixtureRequest, offline: dict[str, Any]) -> Any:
    """Settings of an algorithm whose run takes three updates or iterations, or more."""
    common = {"checkpoint_every": 100} | {
        name: offline[name]
        for name in ("model", "output", "environment", "prompt", "optimizer", "compute")
    }
    return {
        "ppo": lambda: PPOConfig(total_steps=12, batch_size=4, epochs=1, rollout=FOUR, **common),
        "dpo": lambda: DPOConfig(
            total_steps=90, loss_type="sigmoid", rollout=FOUR, group_size=2, **common
        ),
        "sft": lambda: SFTConfig(**common, data=offline["data"], batch_size=8, epochs=0.2),
        # Two updates of each phase: a stop after two is one between phases.
        "archer": lambda: ArcherConfig(
            checkpoint_every=100,
            bc_epochs=0.2,
            critic_epochs=0.2,
            actor_epochs=0.2,
            **offline,
        ),
    }[request.param]()


TRAIN: dict[str, Train] = {
    "ppo": train_ppo,
    "dpo": train_dpo,
    "sft": train_sft,
    "archer": train_archer,
}


@pytest.mark.parametrize("stopped_after", [1, 2])
@pytest.mark.parametrize(
    ("config", "algorithm"), [(name, name) for name in TRAIN], ids=list(TRAIN), indirect=["config"]
)
def test_a_stopped_run_has_a_checkpoint_and_resumes_as_if_never_stopped(
    config: Any, algorithm: str, stopped_after: int
) -> None:
    seen: list[tuple[Path, Mapping[str, float]]] = []

    def stop(run: RunFolder, metrics: Mapping[str, float]) -> bool:
        seen.append((run.path, dict(metrics)))
        return len(seen) == stopped_after

    train = TRAIN[algorithm]
    with calling(stop):
        run = train(config)
    assert [metrics["step"] for _, metrics in seen] == list(range(1, stopped_after + 1))
    assert {path for path, _ in seen} == {run}
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == stopped_after
    assert {path.name for path in (run / "checkpoints").iterdir()} == {f"step_{stopped_after}"}
    train(config, existing="resume")
    whole = train(replace(config, output=f"{config.output}_whole"))
    assert (run / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()


def test_a_callback_that_returns_nothing_stops_nothing(
    small_model: Path, walks: Path, tmp_path: Path
) -> None:
    steps: list[float] = []
    config = SFTConfig(
        model=str(small_model),
        data=str(walks),
        output=str(tmp_path / "run"),
        epochs=0.2,
        environment=CROSSING,
        prompt=ACTION_ONLY,
        optimizer=OptimizerConfig(learning_rate=1e-3),
        compute=ComputeConfig(threads=1),
    )
    with calling(lambda run, metrics: steps.append(metrics["step"])):
        run = train_sft(config)
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert steps == list(range(1, len(lines) + 1))
    with calling(None):
        train_sft(replace(config, output=str(tmp_path / "other")))
    assert len(steps) == len(lines)
