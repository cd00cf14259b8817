"""The results table, row by row."""

from dataclasses import replace
from pathlib import Path

import pytest

from forethought.evaluation.results import Evaluation
from forethought.evaluation.statistics import Interval
from forethought.reports.inputs import read_run
from forethought.reports.results import agents, success_bar, table_section
from tests.unit.reports.builders import HOSTILE, PPO, SFT, Page, evaluation, make_run


def page_of(run: Path) -> Page:
    return Page(table_section(read_run(run)))


def cells(page: Page) -> list[list[str]]:
    """Rows of the table's body, their two lines apart."""
    texts = [e for e in page.elements if e.tag in ("tr", "th", "td")]
    rows: list[list[str]] = []
    for element in texts:
        if element.tag == "tr":
            rows.append([])
        else:
            rows[-1].append(element.text)
    return rows[1:]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """PPO that began with SFT, both evaluated."""
    make_run(tmp_path / "runs" / "sft", SFT, judged=evaluation(0.55))
    return make_run(
        tmp_path / "runs" / "ppo", metrics=4 * ['{"success_rate": 0.9}'], judged=evaluation(0.975)
    )


def test_rows_go_from_chance_to_the_best_possible(run: Path) -> None:
    page = page_of(run)
    heads = [row[0] for row in cells(page)]
    assert heads == [
        "Randomuniform over actions",
        "SFTwhere this run began",
        "PPOthis policy, step_4",
        "Expertthe environment's own",
        "Ceilingbest possible",
    ]
    [marked] = page.all("tr", "this-run")
    assert marked.text.startswith("PPO")


def test_a_row_by_hand(run: Path) -> None:
    [_, _, policy, expert, ceiling] = cells(page_of(run))
    assert policy[1:] == [
        "97.5\u202f%87.5 – 100.0\u202f%",
        "−1.25−2.00 to −0.50",
        "12.5\u202f%",
        "6.5",
        "31.0",
        "0.75",
        "40",
    ]
    assert expert[5] == "–", "scripted agents write no tokens"
    assert ceiling[1:] == ["100.0\u202f%", "–", "–", "–", "–", "–", "–"]


def test_a_run_from_nothing_has_no_row_before_it(tmp_path: Path) -> None:
    run = make_run(tmp_path / "sft", SFT, judged=evaluation(0.5))
    assert [agent.title for agent in agents(read_run(run))] == [
        "Random",
        "SFT",
        "Expert",
        "Ceiling",
    ]


@pytest.mark.parametrize(
    ("judged", "sentence"),
    [
        (evaluation(0.5), "Decoding: greedy."),
        (evaluation(0.5, temperature=0.2), "Decoding: sampled at temperature 0.2."),
        (
            evaluation(0.5, failures=1),
            "1 episode was lost to crashes or timeouts of the env",
        ),
        (evaluation(0.5, failures=12), "12 episodes were lost to crashes or timeouts"),
        (
            evaluation(0.5, checkpoint="step_2"),
            "The run has gone on to step 4 since step_2 was evaluated.",
        ),
    ],
)
def test_the_footnote_says_how_it_was_judged(
    tmp_path: Path, judged: Evaluation, sentence: str
) -> None:
    run = make_run(tmp_path / "run", SFT, metrics=4 * ['{"loss": 1}'], judged=judged)
    assert sentence in page_of(run).all("p", "footnote")[0].text


def test_the_footnote_says_nothing_that_is_not_so(run: Path) -> None:
    [footnote] = page_of(run).all("p", "footnote")
    assert "lost to" not in footnote.text
    assert "has gone on" not in footnote.text
    assert "Decoding of" not in footnote.text


def test_a_start_that_was_judged_otherwise_is_no_equal(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "sft", SFT, judged=evaluation(0.5, temperature=0.7))
    run = make_run(tmp_path / "runs" / "ppo", PPO, judged=evaluation(0.9))
    [footnote] = page_of(run).all("p", "footnote")
    assert "Decoding of SFT: sampled at temperature 0.7." in footnote.text


def test_a_run_that_was_not_judged_says_how_to(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", replace(SFT, output="runs/my sft"))
    page = page_of(run)
    assert not page.all("table")
    assert page.all("code")[0].text == "forethought evaluate 'runs/my sft'"
    assert agents(read_run(run)) == []


def test_a_measure_may_have_any_name(tmp_path: Path) -> None:
    judged = evaluation(0.5)
    policy = replace(judged.policy, metrics=(judged.policy.metrics[0]._replace(name="<img>"),))
    run = make_run(tmp_path / "run", SFT, judged=replace(judged, policy=policy, checkpoint=HOSTILE))
    page = page_of(run)
    assert not page.all("img")
    assert not page.all("script")
    assert "<img>" in [element.text for element in page.all("th")]


def test_a_card_of_a_phone_names_every_line(run: Path) -> None:
    page = page_of(run)
    assert {e.attributes["data-column"] for e in page.all("td")} == {
        *("Success", "Return", "Invalid", "Steps / episode", "Tokens / step", "progress"),
        "Episodes",
    }
    assert all(e.text == "–" for e in page.all("td", "missing"))


def test_a_bar_by_hand() -> None:
    bar = Page(success_bar(0.5, Interval(0.4, 0.65), ceiling=0.9))
    assert [(e.attributes["class"], e.attributes["style"]) for e in bar.all("i")] == [
        ("fill", "width:50.0%"),
        ("whisker", "left:40.0%;width:25.0%"),
        ("ceiling", "left:90.0%"),
    ]
