"""The tables of thoughts and of faithfulness, and the plot."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

from forethought.evaluation.faithfulness import Faithfulness, FaithfulnessRow
from forethought.evaluation.results import faithfulness_to_json
from forethought.evaluation.statistics import Rate, ThoughtRates
from forethought.reports.inputs import read_run
from forethought.reports.page import render
from forethought.reports.results import faithfulness_plot, faithfulness_section, table_section
from forethought.runs.run_folder import RunFolder
from tests.unit.reports.builders import HOSTILE, Page, evaluation, make_run

RATES = ThoughtRates(
    perception_accuracy=Rate.of(150, 200),
    thought_action_consistency=Rate.of(80, 100),
    strict_format=Rate.of(84, 100),
)
ROW = FaithfulnessRow("own", Rate.of(9, 10), 0.875, Rate.of(10, 10), 0.75, Rate.of(5, 10))
FOUND = Faithfulness(
    environment_id="NumberLine",
    checkpoint="step_4",
    episodes="evaluation_episodes.parquet",
    steps=10,
    mean_actions=2.0,
    rows=(
        ROW,
        replace(ROW, thoughts="expert"),
        replace(ROW, thoughts="other"),
        replace(ROW, thoughts="none", follows_thought=None, thought_probability=None),
    ),
)


def test_thoughts_have_a_table_of_those_who_think(tmp_path: Path) -> None:
    judged = evaluation(0.9)
    judged = replace(judged, policy=replace(judged.policy, thoughts=RATES))
    page = Page(table_section(read_run(make_run(tmp_path / "run", judged=judged))))
    rows = [row.text for row in page.all("tr")]
    [policy] = [row for row in rows if "84.0" in row]
    assert "75.0\u202f%68.6 – 80.5\u202f% of 200" in policy
    assert "80.0\u202f%" in policy
    assert policy.count("–") == 5  # three intervals; no claims of whole steps, no inference
    assert sum("Strict format" in row for row in rows) == 1


def test_without_facts_there_is_no_such_table(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", judged=evaluation(0.9))
    assert "Strict format" not in table_section(read_run(run))


def test_faithfulness_is_shown_where_it_was_measured(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", judged=evaluation(0.9))
    assert "Causal faithfulness" not in render(read_run(run))
    RunFolder(run).faithfulness_path.write_text(faithfulness_to_json(FOUND), encoding="utf-8")
    html = render(read_run(run))
    assert "Causal faithfulness" in html
    page = Page(faithfulness_section(FOUND))
    texts = [row.text for row in page.all("tr")]
    assert texts[1].startswith("own thoughts90.0\u202f%")
    assert texts[1].endswith("0.880.75")
    assert texts[4].startswith("no thoughts–100.0\u202f%")


def test_a_checkpoint_of_any_name_is_text() -> None:
    html = faithfulness_section(replace(FOUND, checkpoint=HOSTILE))
    assert HOSTILE not in html


def test_the_plot_is_an_svg_that_does_not_change() -> None:
    svg = faithfulness_plot(FOUND)
    assert svg == faithfulness_plot(FOUND)
    ElementTree.fromstring(svg)
    for title in ("own thoughts", "no thoughts", "what the thoughts conclude"):
        assert title in svg
