"""Workers play a run's episodes: in lockstep it equals one process, and it outlives them."""

import threading
from collections.abc import Generator
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.train import train_ppo
from forethought.configs.acting import GenerationConfig
from forethought.configs.parts import EnvironmentConfig, RolloutConfig
from forethought.errors import StorageError
from forethought.rollouts.board import Board
from forethought.rollouts.store import read_shards
from tests.contract.test_engines import SAMPLING, SETTINGS, ids_of, metric, weights_of
from tests.durability.commands import NOWHERE, fork
from tests.engines import bandit, engine_of, save_model

ROLLOUT = RolloutConfig(num_envs=16, steps_per_iteration=16, sampling=SAMPLING)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("workers") / "model", bandit())


@pytest.fixture
def engine(model: Path, tmp_path: Path) -> Generator[str]:
    with engine_of(model, tmp_path) as url:
        yield url


def config_of(model: Path, run: Path, engine: str | None, **changes: Any) -> PPOConfig:
    engines = GenerationConfig() if engine is None else GenerationConfig((engine,), workers=True)
    usual = SETTINGS | {"rollout": ROLLOUT, "generation": engines} | changes
    return PPOConfig(model=str(model), output=str(run), **usual)


def worker(run: Path) -> ForkServerProcess:
    """A process of `forethought work`."""
    return fork(["work", "--run", str(run), "--num-envs", "3"], NOWHERE, NOWHERE)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="a critic"),
        pytest.param({"advantage": "grpo", "group_size": 4}, id="groups"),
    ],
)
def test_lockstep_equals_one_process(
    model: Path, engine: str, tmp_path: Path, changes: dict[str, Any]
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    train_ppo(config_of(model, one, None, **changes))
    workers = [worker(two) for _ in range(2)]
    train_ppo(config_of(model, two, engine, **changes))
    for process in workers:
        process.join(60)
        assert process.exitcode is not None
    late = worker(two)
    late.join(60)
    assert late.exitcode == 0  # The run is over: there is nothing to wait for.
    assert ids_of(two) == ids_of(one)
    for name in ("success_rate", "policy_loss", "gradient_norm"):
        assert metric(two, name) == pytest.approx(metric(one, name), rel=1e-3, abs=1e-5)
    own, others = (weights_of(run, "model.safetensors") for run in (one, two))
    for name, tensor in own.items():
        np.testing.assert_allclose(others[name], tensor, atol=2e-4, rtol=1e-2)


def test_a_cut_episode_is_judged_by_the_state_behind_it(
    model: Path, engine: str, tmp_path: Path
) -> None:
    """Episodes that the step limit cut: their bootstrap value is the one of a single process."""
    changes: dict[str, Any] = {
        "environment": EnvironmentConfig("NumberLine", options=("max_position=2",), image_size=64),
        "total_steps": 32,
        "rollout": replace(ROLLOUT, num_envs=4, steps_per_iteration=32),
        "batch_size": 32,
    }
    one, two = tmp_path / "one", tmp_path / "two"
    train_ppo(config_of(model, one, None, **changes))
    process = worker(two)
    train_ppo(config_of(model, two, engine, **changes))
    process.join(60)
    found = [
        {
            trajectory.seed: trajectory.bootstrap_value
            for trajectory in read_shards(run / "trajectories")
            if trajectory.is_finished and trajectory.steps[-1].truncated
        }
        for run in (one, two)
    ]
    both = found[0].keys() & found[1].keys()
    assert both
    for seed in both:
        assert found[1][seed] == pytest.approx(found[0][seed], abs=1e-4)
        assert found[1][seed] != 0


def test_workers_die_and_come_and_the_run_goes_on(
    model: Path, engine: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every few seconds one is killed and another comes; with a bound of 2 on staleness."""
    run = tmp_path / "run"
    generation = GenerationConfig(
        (engine,), workers=True, max_staleness=2, worker_silence_s=4.0, importance_cap=2.0
    )
    is_done = threading.Event()

    def churn() -> None:
        workers = [worker(run), worker(run)]
        while not is_done.wait(4.0):
            workers.pop(0).kill()
            workers.append(worker(run))
        for process in workers:
            process.join(60)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        train_ppo(config_of(model, run, engine, total_steps=128, generation=generation))
    finally:
        is_done.set()
        thread.join()
    trajectories = list(read_shards(run / "trajectories"))
    assert len(trajectories) == 128
    assert len({trajectory.seed for trajectory in trajectories}) == 128
    for shard in sorted((run / "trajectories").glob("*.parquet")):
        iteration = int(shard.name.split("_")[1]) - 1
        versions = {s.policy_version for t in read_shards(shard) for s in t.steps}
        assert iteration - 2 <= min(versions) <= max(versions) <= iteration


def test_without_workers_the_run_stops_with_a_line(
    model: Path, engine: str, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    generation = GenerationConfig((engine,), workers=True, patience_s=0.5)
    with pytest.raises(StorageError, match=r"no episode was handed in for 0.5 s — start workers"):
        train_ppo(config_of(model, run, engine, generation=generation))
    assert not Board(run / "work").is_over  # Workers that come now wait for it to go on.
