"""`forethought quickstart`: what it prints, and that it can be stopped, repeated and redone.

With budgets too small to learn anything; tests/learning holds the real one.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.sft.config import SFTConfig
from forethought.cli import quickstart
from forethought.cli.interrupts import Interrupt
from forethought.cli.quickstart import Quickstart, ppo_config, sft_config
from forethought.configs.file import load_config
from forethought.configs.parts import RolloutConfig, SamplingConfig
from tests.unit.cli.terminal import Type

CONFIGS = Path(__file__).parents[3] / "configs"
COMMAND = "quickstart --episodes 4"


@pytest.fixture(autouse=True)
def small_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    def small_sft(settings: Quickstart) -> SFTConfig:
        return replace(sft_config(settings), expert_steps=64, epochs=2.0, batch_size=16)

    def small_ppo(settings: Quickstart) -> PPOConfig:
        rollout = RolloutConfig(
            num_envs=4,
            steps_per_iteration=8,
            sampling=SamplingConfig(temperature=1.0, max_new_tokens=8),
        )
        return replace(
            ppo_config(settings), rollout=rollout, total_steps=16, batch_size=8, checkpoint_every=1
        )

    monkeypatch.setattr(quickstart, "sft_config", small_sft)
    monkeypatch.setattr(quickstart, "ppo_config", small_ppo)


def test_the_last_line_holds_the_figures(type_: Type, tmp_path: Path) -> None:
    outcome = type_(COMMAND)
    assert outcome.code == 0
    figures = json.loads(outcome.out.splitlines()[-1])
    keys = "sft_success_rate ppo_success_rate success_interval episodes sft_thoughts ppo_thoughts"
    assert list(figures) == [*keys.split(), "seconds", "report"]
    assert figures["ppo_thoughts"]["strict_format"] == 0
    assert figures["episodes"] == 4
    low, high = figures["success_interval"]
    assert low <= figures["ppo_success_rate"] <= high
    assert (tmp_path / figures["report"]).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_what_was_done_is_not_done_again(type_: Type) -> None:
    first = json.loads(type_(COMMAND).out.splitlines()[-1])
    checkpoints = Path("runs/quickstart/checkpoints")
    before = {path: path.stat().st_mtime_ns for path in checkpoints.rglob("*")}
    second = json.loads(type_(COMMAND).out.splitlines()[-1])
    assert {path: path.stat().st_mtime_ns for path in checkpoints.rglob("*")} == before
    assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_a_run_with_other_settings_is_refused_unless_it_may_go(type_: Type) -> None:
    assert type_(COMMAND).code == 0
    outcome = type_(f"{COMMAND} --seed 1")
    assert outcome.code == 2
    assert outcome.lines == [
        "error: runs/quickstart_sft: holds a run with other settings — replace it with "
        "--overwrite, or name another --output"
    ]
    assert type_(f"{COMMAND} --seed 1 --overwrite").code == 0
    assert load_config(Path("runs/quickstart/config.yaml"), PPOConfig).seed == 1


def test_no_episodes_are_refused_before_anything_is_trained(
    type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begun(settings: Quickstart) -> SFTConfig:
        pytest.fail("it has begun")

    monkeypatch.setattr(quickstart, "sft_config", begun)
    outcome = type_("quickstart --episodes 0")
    assert outcome == (2, "", "error: episodes is 0 — expected 1 or more\n")


def test_an_interruption_says_how_to_go_on(type_: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    from forethought.algorithms.ppo import train as ppo

    def interrupted(*_: object, **__: object) -> None:
        raise Interrupt(2)

    with monkeypatch.context() as patch:
        patch.setattr(ppo, "improve", interrupted)
        outcome = type_(f"{COMMAND} --seed 3 --overwrite")
    assert outcome.code == 130
    way_on = "forethought quickstart --seed 3 --episodes 4"
    assert outcome.lines[-1] == f"interrupted; continue with: {way_on}"
    assert type_(way_on.removeprefix("forethought ")).code == 0


def test_the_files_in_configs_say_the_same() -> None:
    settings = Quickstart()
    assert load_config(CONFIGS / "quickstart_sft.yaml", SFTConfig) == sft_config(settings)
    assert load_config(CONFIGS / "quickstart_ppo.yaml", PPOConfig) == ppo_config(settings)
