"""The table and its data, from evaluations made by hand."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from forethought.algorithms.ppo.config import PPOConfig
from forethought.configs.contract import AnyConfig
from forethought.errors import DivergenceError
from forethought.evaluation.results import EvaluationRow
from forethought.evaluation.statistics import Interval
from forethought.studies.plan import Plan
from forethought.studies.results import to_json, write_results
from forethought.studies.running import complete_runs, read_outcome
from forethought.studies.summary import pool, summarize
from tests.unit.studies.builders import STUDY, Workshop, evaluation, make_plan

TWENTY = STUDY.replace("episodes: 4", "episodes: 20")


def successes(config: AnyConfig) -> int:
    """Of 20: after SFT 5 and 5; half 10 and 16; none 0 and 20."""
    if not isinstance(config, PPOConfig):
        return 5
    return ((10, 16) if config.thought_weight else (0, 20))[config.seed]


@pytest.fixture
def plan() -> Plan:
    plan = make_plan(TWENTY)
    complete_runs(plan, Workshop(successes=successes).work)
    return plan


def lines(plan: Plan) -> list[list[str]]:
    """The table's lines, cell by cell."""
    text = write_results(plan, Path("results"))[0].read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_seeds_are_pooled_as_one_sample_of_episodes() -> None:
    """26 of 40 with z = 1.959964: center (0.65 + 0.048018) / 1.096036 = 0.636857,
    radius 1.959964 sqrt(0.65 * 0.35 / 40 + 0.000600228) / 1.096036 = 0.141798."""
    found = pool([evaluation(10, 20).policy, evaluation(16, 20).policy])
    assert found is not None
    assert (found.seeds, found.episodes, found.successes) == (2, 40, 26)
    assert found.success_rate == 0.65
    assert found.success_interval == pytest.approx((0.495059, 0.778655), abs=2e-6)
    assert found.seed_mean == pytest.approx(0.65)
    assert found.seed_deviation == pytest.approx(0.3 / 2**0.5)  # of 0.5 and 0.8
    assert found.seed_range == (0.5, 0.8)
    assert found.mean_return == pytest.approx(0.65)


def test_each_episode_and_each_step_counts_the_same() -> None:
    """10 episodes of 1 step and 30 of 3: returns (10 * 1 + 30 * 2) / 40; of 100 steps
    5 + 9 invalid."""
    few = EvaluationRow("a", 0.0, None, 1.0, None, 0.5, 1.0, None, 10, 0)
    many = EvaluationRow("b", 1.0, None, 2.0, None, 0.1, 3.0, None, 30, 0)
    found = pool([few, many])
    assert found is not None
    assert found.success_rate == 0.75
    assert found.mean_return == pytest.approx(1.75)
    assert found.invalid_rate == pytest.approx(0.14)


def test_intervals_of_returns_are_put_together_as_independent() -> None:
    """Radii 0.4 and 0.3 over 10 and 30 episodes: sqrt((0.25 * 0.4)² + (0.75 * 0.3)²) = 0.246221
    about the mean (10 * 1 + 30 * 2) / 40."""
    few = EvaluationRow("a", 0.0, None, 1.0, Interval(0.6, 1.4), 0.5, 1.0, None, 10, 0)
    many = EvaluationRow("b", 1.0, None, 2.0, Interval(1.7, 2.3), 0.1, 3.0, None, 30, 0)
    both, one = pool([few, many]), pool([few])
    assert both is not None
    assert both.return_interval == pytest.approx((1.503779, 1.996221), abs=2e-6)
    assert one is not None
    assert one.return_interval == (0.6, 1.4)
    unknown = pool([few, evaluation(1, 4).policy])
    assert unknown is not None
    assert unknown.return_interval is None


def test_one_seed_has_no_spread_and_none_no_pool() -> None:
    one = pool([evaluation(1, 4).policy])
    assert one is not None
    assert one.seed_deviation is None
    assert pool([]) is None
    assert pool([EvaluationRow("lost", episodes=0, failures=4)]) is None


def test_the_table(plan: Plan) -> None:
    table = lines(plan)
    assert table[2:8] == [
        ["random", "–", "–", "25.0", "–", "0.25", "–", "–", "20", "–"],
        ["expert", "–", "–", "100.0", "–", "1.00", "–", "–", "20", "–"],
        ["ceiling", "–", "–", "100.0", "–", "–", "–", "–", "–", "–"],
        [
            *("half", "1. sft", "0: 25.0, 1: 25.0", "25.0 [14.2, 40.2]", "25.0 ± 0.0"),
            *("0.25", "25.0", "2 of 2", "40", "0.0"),
        ],
        [
            *("**half**", "2. ppo", "0: 50.0, 1: 80.0", "65.0 [49.5, 77.9]", "65.0 ± 21.2"),
            *("0.65", "25.0", "2 of 2", "40", "0.0"),
        ],
        [
            *("**none**", "2. ppo", "0: 0.0, 1: 100.0", "50.0 [35.2, 64.8]", "50.0 ± 70.7"),
            *("0.50", "25.0", "2 of 2", "40", "0.0"),
        ],
    ]
    assert [line[2] for line in table[10:]] == ["finished"] * 6


def test_extra_evaluations_have_columns(plan: Plan) -> None:
    told = "extra_evaluations: [{name: dark, options: [light=off]}]\n"

    def in_the_dark(config: AnyConfig) -> int:
        return 2 if config.environment.options == ("light=off",) else successes(config)

    plan = make_plan(TWENTY + told)
    complete_runs(plan, Workshop(successes=in_the_dark).work)
    table = lines(plan)
    assert table[0][10:] == ["dark: success, % [95 %]", "dark: return [95 %]"]
    assert table[2][:4] == ["random (Bandit)", "–", "–", "25.0"]
    assert table[5][:4] == ["random (Bandit light=off)", "–", "–", "25.0"]
    assert table[9][3:4] == ["65.0 [49.5, 77.9]"]
    assert table[9][10:] == ["10.0 [4.0, 23.1]", "0.10"]
    data = json.loads(Path("results/results.json").read_text(encoding="utf-8"))
    assert data["stages"][1]["extra_evaluations"]["dark"]["successes"] == 4


def test_a_study_that_has_hardly_begun_is_a_page_too() -> None:
    plan = make_plan(TWENTY)
    text = write_results(plan, Path("results"))[0].read_text(encoding="utf-8")
    assert "2 variants, 6 runs: 6 missing. Training 0.0 min in all." in text
    assert "| **half** | 2. ppo | 0: missing, 1: missing | – |" in text
    assert sorted(path.name for path in Path("results").iterdir()) == ["results.json", "table.md"]


def test_what_was_not_run_is_said_and_not_counted() -> None:
    def fails(config: AnyConfig) -> None:
        if isinstance(config, PPOConfig) and config.thought_weight and config.seed == 1:
            raise DivergenceError("a | b <c>")

    plan = make_plan(TWENTY)
    complete_runs(plan, Workshop(successes=successes, trouble=fails).work)
    table = lines(plan)
    assert table[6][:5] == [
        *("**half**", "2. ppo", "0: 50.0, 1: failed", "50.0 [29.9, 70.1]", "50.0")
    ]
    assert table[6][7] == "1 of 2"
    text = Path("results/table.md").read_text(encoding="utf-8")
    assert "2 variants, 6 runs: 5 finished, 1 failed." in text
    assert r"| a \| b \<c> |" in text


def test_the_data_hold_what_the_table_says(plan: Plan) -> None:
    write_results(plan, Path("results"))
    data = json.loads(Path("results/results.json").read_text(encoding="utf-8"))
    assert (data["study"], data["code_version"], data["episodes"]) == ("demo", "0", 20)
    last = data["stages"][1]
    assert (last["variant"], last["algorithm"], last["is_last"]) == ("half", "ppo", True)
    assert [seed["policy"]["success_rate"] for seed in last["seeds"]] == [0.5, 0.8]
    assert last["pooled"]["successes"] == 26
    runs = {run["key"]: run for run in data["runs"]}
    assert len(runs) == 6
    for seed in last["seeds"]:
        run = runs[seed["run"]]
        assert run["variants"] == ["half"]
        assert runs[run["starts_from"]]["algorithm"] == "sft"


def test_minutes_that_variants_share_count_once_in_the_sum(plan: Plan) -> None:
    for run in plan.runs():
        line = json.dumps({"step": 1, "update_s": 60.0})
        run.folder.timings_path.write_text(line + "\n", encoding="utf-8")
    summary = summarize(plan, [read_outcome(c, plan) for c in plan.runs()])
    assert [stage.seconds for stage in summary.stages] == [120.0] * 4
    assert summary.seconds == 360.0
    assert json.loads(to_json(summary))["training_s"] == 360.0


def test_the_images(plan: Plan) -> None:
    for run in plan.runs():
        lines = [{"step": n, "success_rate": n / 2} for n in (1, 2)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        run.folder.metrics_path.write_text(text, encoding="utf-8")
    written = write_results(plan, Path("results"))
    names = [path.name for path in written]
    assert names == ["table.md", "results.json", "success.svg", "curves.svg"]
    before = [path.read_bytes() for path in written]
    for path in written[2:]:
        text = " ".join(ElementTree.parse(path).getroot().itertext())
        assert "half" in text
        assert "none" in text
        assert f"]({path.name})" in written[0].read_text(encoding="utf-8")
    assert [path.read_bytes() for path in write_results(plan, Path("results"))] == before
