"""Head and end of the page: what was trained, what came of it, how to do it again."""

import os
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from forethought.algorithms.dpo.config import DPOConfig
from forethought.cli.evaluate import Evaluate
from forethought.cli.settings import read_settings
from forethought.configs.contract import AnyConfig
from forethought.configs.parts import RolloutConfig
from forethought.reports.inputs import read_run
from forethought.reports.page import header_section, page_title, setup_section
from tests.unit.reports.builders import PPO, SFT, Page, evaluation, make_run

DPO = DPOConfig(total_steps=40, rollout=RolloutConfig(num_envs=8, steps_per_iteration=8))


def facts(run: Path) -> dict[str, str]:
    page = Page(header_section(read_run(run)))
    names, values = page.all("dt"), page.all("dd")
    return {name.text: value.text for name, value in zip(names, values, strict=True)}


def headline(run: Path) -> str:
    page = Page(header_section(read_run(run)))
    return " ".join(" | ".join(div.text for div in page.all("div", "headline")).split())


def test_the_title_names_algorithm_and_environment(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path / "run", SFT))
    assert page_title(run) == "SFT on NumberLine"
    assert Page(header_section(run)).all("h1")[0].text == "SFT on NumberLine"


def test_facts_of_a_finished_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", metrics=4 * ['{"entropy": 1}'])
    os.utime(run / "metrics.jsonl", (0, 86_400 * 365))
    assert facts(run) == {
        "Starting model": "runs/sft",
        "Trained for": "32 environment steps",
        "Seed": "3",
        "Last logged": "01 Jan 1971, 00:00 UTC",
    }


@pytest.mark.parametrize(
    ("config", "lines", "expected"),
    [
        pytest.param(PPO, 0, "0 of 32 environment steps", id="PPO, only begun"),
        pytest.param(PPO, 2, "24 of 32 environment steps", id="PPO, half way"),
        pytest.param(PPO, 3, "36 environment steps", id="PPO of whole episodes, done"),
        pytest.param(SFT, 2, "2 of 4 updates", id="SFT, half way"),
        pytest.param(SFT, 4, "4 updates", id="SFT, done"),
        pytest.param(replace(SFT, data="x"), 2, "2 updates", id="SFT on data of unknown size"),
        pytest.param(DPO, 0, "0 of 40 environment steps", id="DPO, only begun"),
        pytest.param(DPO, 2, "24 of 40 environment steps", id="DPO, half way"),
        pytest.param(DPO, 3, "36 environment steps", id="DPO, done"),
        pytest.param(replace(DPO, data="x"), 1, "1 of 2 passes over the pairs", id="of data"),
    ],
)
def test_progress(tmp_path: Path, config: AnyConfig, lines: int, expected: str) -> None:
    run = make_run(tmp_path / "run", config, metrics=lines * ['{"environment_steps": 12}'])
    assert facts(run)["Trained for"] == expected


def test_a_run_that_logged_nothing_tells_when_it_began(tmp_path: Path) -> None:
    assert "Started" in facts(make_run(tmp_path / "run"))


def test_the_headline_goes_from_the_start_to_this_policy(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "sft", SFT, judged=evaluation(0.55))
    run = make_run(tmp_path / "runs" / "ppo", PPO, judged=evaluation(0.975))
    assert headline(run) == (
        "Success on held-out episodes"
        "SFT55.0 %45.0 – 65.0 %→PPO97.5 %87.5 – 100.0 %"
        "Random20.0 %10.0 – 30.0 %Expert100.0 %90.0 – 100.0 %Ceiling100.0 %"
    )


def test_without_a_start_it_is_this_policy_alone(tmp_path: Path) -> None:
    text = headline(make_run(tmp_path / "run", PPO, judged=evaluation(0.975)))
    assert "→" not in text
    assert "PPO97.5 %" in text


def test_before_an_evaluation_it_is_success_in_training(tmp_path: Path) -> None:
    lines = ['{"success_rate": 0.25}', '{"success_rate": 0.5}', '{"success_rate": null}']
    text = headline(make_run(tmp_path / "run", PPO, metrics=lines))
    assert "not evaluated on held-out episodes yet" in text
    assert "PPO50.0 %" in text


@pytest.mark.parametrize("lines", [[], ['{"loss": 1}'], ['{"success_rate": null}']])
def test_before_that_there_is_none(tmp_path: Path, lines: list[str]) -> None:
    assert headline(make_run(tmp_path / "run", PPO, metrics=lines)) == ""


# How to do it again


def commands(run: Path) -> list[list[str]]:
    shown = Page(setup_section(read_run(run))).all("pre")[0].text
    return [shlex.split(line) for line in shown.splitlines()]


def test_the_commands_that_give_the_run_again(tmp_path: Path) -> None:
    config = replace(PPO, output="my runs/ppo/")
    judged = evaluation(0.5, temperature=0.2)
    train, evaluate, report = commands(make_run(tmp_path / "run", config, judged=judged))
    again = "my runs/ppo-again"
    assert train == (
        ["forethought", "train", "ppo", "--config", "my runs/ppo/config.yaml", "--output", again]
    )
    assert evaluate == (
        ["forethought", "evaluate", again, "--episodes", "40", "--temperature", "0.2"]
    )
    assert report == ["forethought", "report", again]


def test_they_are_commands_that_the_command_line_takes(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", SFT, judged=evaluation(0.5, temperature=0.2))
    _, evaluate, _ = commands(run)
    got = read_settings(Evaluate, evaluate[2:], program="forethought evaluate", description="")
    assert got.run == "runs/sft-again"
    assert (got.evaluation.episodes, got.evaluation.sampling.temperature) == (40, 0.2)


def test_a_run_that_was_not_judged_is_judged_as_runs_are(tmp_path: Path) -> None:
    assert commands(make_run(tmp_path / "run", SFT))[1] == (
        ["forethought", "evaluate", "runs/sft-again"]
    )


def test_settings_and_versions_are_there_word_for_word(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", SFT, versions="python 3.11\ntorch <b>2\n")
    page = Page(setup_section(read_run(run)))
    [_, settings, versions] = [pre.text for pre in page.all("pre")]
    assert settings == (run / "config.yaml").read_text()
    assert versions == "python 3.11\ntorch <b>2\n"
    assert not page.all("p", "notice")


def test_unknown_versions_are_named_as_such(tmp_path: Path) -> None:
    page = Page(setup_section(read_run(make_run(tmp_path / "run", SFT))))
    assert page.all("p", "notice")[0].text == "Versions unknown: no environment.txt."
