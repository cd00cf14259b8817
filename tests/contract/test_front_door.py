"""`import forethought as ft`: its script runs for real, and the import loads next to nothing."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import forethought as ft
from forethought.errors import ConfigError, RunFolderError, UnknownNameError
from forethought.runs.run_folder import RunFolder

ALLOWED = {"forethought", "forethought.errors"}
"""What `import forethought` may load of this package."""
HEAVY = ("torch", "transformers", "numpy", "gymnasium", "yaml", "tyro", "PIL", "pyarrow")
SMALL = ft.RolloutConfig(
    num_envs=4,
    steps_per_iteration=4,
    sampling=ft.SamplingConfig(temperature=1.0, max_new_tokens=32),
    on_invalid="penalize",
)
ONE_THREAD = ft.ComputeConfig(threads=1)


@pytest.fixture(scope="module")
def sft(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    output = tmp_path_factory.mktemp("front door") / "sft"
    return ft.train(
        "sft",
        output=output,
        environment="Bandit",
        expert_steps=32,
        batch_size=16,
        epochs=1,
        compute=ONE_THREAD,
    )


def test_the_script(sft: RunFolder, tmp_path: Path) -> None:
    """Train, evaluate, report, load, play: with paths of any kind."""
    run = ft.train(
        ft.PPOConfig(
            model=sft,
            environment="Bandit",
            output=tmp_path / "ppo",
            total_steps=8,
            batch_size=4,
            epochs=1,
            rollout=SMALL,
            compute=ONE_THREAD,
        )
    )
    result = ft.evaluate(run, episodes=6, threads=1)
    assert result.success.episodes == 6
    assert result.success.interval.low <= result.success.rate <= result.success.interval.high
    assert run.evaluation_path.exists()
    assert ft.report(run) == run.report_path
    assert "<html" in run.report_path.read_text(encoding="utf-8")
    policy = ft.load_policy(str(run))
    env = ft.make_environment("Bandit")
    ft.check_environment(lambda: ft.make_environment("Bandit"))
    assert env.reset(seed=0).text
    assert policy.version >= 0
    stats = ft.collect(tmp_path / "data", policy=run, episodes=3, max_new_tokens=8)
    assert len(stats.returns) + stats.failures == 3
    stored = list(ft.read_trajectories(tmp_path / "data"))
    assert [len(one.steps) for one in stored] == [1, 1, 1]


def test_a_callback_stops_and_a_reward_is_recorded(sft: RunFolder, tmp_path: Path) -> None:
    seen: list[Mapping[str, float]] = []

    def stop(run: RunFolder, metrics: Mapping[str, float]) -> bool:
        seen.append(metrics)
        return True

    def half(outcome: ft.StepOutcome) -> float:
        return outcome.reward / 2

    config = ft.PPOConfig(
        model=sft.path,
        environment="Bandit",
        output=tmp_path / "run",
        total_steps=12,
        batch_size=4,
        epochs=1,
        rollout=SMALL,
        compute=ONE_THREAD,
    )
    run = ft.train(config, on_iteration=stop, reward=half)
    assert len(seen) == 1
    recorded = run.config_path.read_text(encoding="utf-8")
    assert "reward: tests.contract.test_front_door:test_a_callback" in recorded
    with pytest.raises(RunFolderError, match="its own settings"):
        ft.train(config, existing="resume")
    ft.train(config, existing="resume", reward=half)
    lines = run.metrics_path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3


def test_importing_loads_next_to_nothing() -> None:
    """Modules are counted, not milliseconds."""
    code = "import forethought, sys; print('\\n'.join(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = said.stdout.split()
    assert {name for name in loaded if name.partition(".")[0] == "forethought"} <= ALLOWED
    assert not {name.partition(".")[0] for name in loaded} & set(HEAVY)


def test_every_name_of_the_front_door_exists() -> None:
    for name in ft.__all__:
        assert getattr(ft, name) is not None
        assert name in dir(ft)
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        ft.trian  # noqa: B018


def test_settings_hold_text_and_groups() -> None:
    config = ft.PPOConfig(model=Path("runs/sft"), environment="EZPoints")
    assert config.model == "runs/sft"
    assert config.environment == ft.EnvironmentConfig("EZPoints")


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown algorithm 'pop'"):
        ft.train("pop")
    with pytest.raises(ConfigError, match="unknown field total_step"):
        ft.train("ppo", total_step=3)
    with pytest.raises(UnknownNameError, match="environment=…"):
        ft.evaluate(tmp_path)
    with pytest.raises(ConfigError, match="cannot import the reward function"):
        ft.train(
            ft.PPOConfig(environment=ft.EnvironmentConfig("Bandit", workers=1)),
            reward=lambda outcome: 0.0,
        )
