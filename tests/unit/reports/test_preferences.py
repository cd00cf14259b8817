"""What was compared, as the report shows it."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp
from pathlib import Path

import pytest

from forethought.algorithms.dpo.config import DPOConfig
from forethought.reports import write_report
from forethought.reports.histograms import action_probability, odds_of
from forethought.reports.preferences import MOST_PAIRS, marked_difference, names_its_action
from forethought.runs.pairs import CompletionPlace, PairPlace, write_pairs
from forethought.types import Span, Step, Trajectory
from tests.unit.reports.builders import HOSTILE, Page, episode, image, make_run, step

GOOD = step('{"thoughts": "I go", "action": "go"}', last=True, image=image())
BAD = step('{"thoughts": "I stay", "action": "go"}', last=True)
PAIR = PairPlace(CompletionPlace(0, 0, 45.0), CompletionPlace(1, 0, -1.0))


def page(path: Path, played: Sequence[Trajectory], pairs: Sequence[PairPlace]) -> Page:
    run = make_run(path, DPOConfig(model="tiny"), training=played)
    write_pairs(run / "pairs" / "step_000004_process_0.jsonl", pairs)
    return Page(write_report(run).read_text(encoding="utf-8"))


def test_both_answers_with_their_scores(tmp_path: Path) -> None:
    shown = page(tmp_path / "run", [episode(GOOD), episode(BAD)], [PAIR])
    section = shown.section("preferences")
    odds = f"{exp(sum(GOOD.completion.logprobs[slice(*GOOD.action.action_span)])):.2f}"
    assert "Iteration 4 found 1 pair; 1 shown." in section
    assert f"chosen score 45.00, p(action | thoughts) {odds}" in section
    assert "rejected score −1.00" in section
    assert "Where to?" in section
    assert '"I stay"' in section
    assert len([e for e in shown.all("img") if e.attributes["alt"] == "What the model saw"]) == 1


def test_responses_to_unequal_prompts_have_each_their_own(tmp_path: Path) -> None:
    other = step('{"thoughts": "I stay", "action": "go"}', message="And there?", last=True)
    section = page(tmp_path / "run", [episode(GOOD), episode(other)], [PAIR]).section("preferences")
    places = [section.index(text) for text in ("Where to?", "chosen", "And there?", "rejected")]
    assert places == sorted(places)


def test_a_pair_has_two_columns_with_their_difference_marked(tmp_path: Path) -> None:
    good = replace(GOOD, prompt=BAD.prompt)
    shown = page(tmp_path / "run", [episode(good), episode(BAD)], [PAIR])
    [columns] = shown.all("div", "side-by-side")
    assert [e.text.split()[0] for e in shown.all("article")[1:]] == ["chosen", "rejected"]
    assert shown.section("preferences").count("Where to?") == 1, "asked once"
    assert [mark.text for mark in shown.all("mark")] == ["go", "stay"]
    assert GOOD.completion.text in columns.text
    assert BAD.completion.text in columns.text


@pytest.mark.parametrize(
    ("one", "other", "marked"),
    [
        pytest.param("a b", "a b", ("a b", "a b"), id="equal"),
        pytest.param("go on", "go", ("go<mark> on</mark>", "go"), id="one is longer"),
        pytest.param("<b", "&b", ("<mark>&lt;</mark>b", "<mark>&amp;</mark>b"), id="escaped"),
        pytest.param("", "x", ("", "<mark>x</mark>"), id="one is empty"),
        pytest.param(
            "12 to 3", "12 to 4", ("12 to <mark>3</mark>", "12 to <mark>4</mark>"), id="n"
        ),
    ],
)
def test_words_that_one_text_alone_has_are_marked(
    one: str, other: str, marked: tuple[str, str]
) -> None:
    assert marked_difference(one, other) == marked


def test_at_most_so_many_spread_over_all(tmp_path: Path) -> None:
    pairs = [PairPlace(CompletionPlace(0, 0, float(n)), PAIR.rejected) for n in range(80)]
    section = page(tmp_path / "run", [episode(GOOD), episode(BAD)], pairs).section("preferences")
    assert f"found 80 pairs; {MOST_PAIRS} shown." in section
    for n in range(0, 80, 80 // MOST_PAIRS):
        assert f"chosen score {n}.00" in section


def test_no_pairs_are_said_to_be_none(tmp_path: Path) -> None:
    section = page(tmp_path / "run", [episode(GOOD)], []).section("preferences")
    assert "The last iteration found no pairs." in section
    assert "p(action | thoughts)" in section


def test_a_run_that_compares_nothing_has_no_such_section(tmp_path: Path) -> None:
    html = write_report(make_run(tmp_path / "run", training=[episode(GOOD)])).read_text("utf-8")
    assert 'id="preferences"' not in html


def test_answers_are_shown_and_not_run(tmp_path: Path) -> None:
    bad = step(HOSTILE, message=HOSTILE, is_valid=False, last=True)
    pair = PairPlace(CompletionPlace(0, 0, 1.0), CompletionPlace(1, 0, 0.0))
    shown = page(tmp_path / "run", [episode(bad), episode(bad)], [pair])
    assert not [e for e in shown.all("img") if e.attributes.get("src") == "x"]
    assert len(shown.all("script")) == 2


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        pytest.param(GOOD, True, id="I go, so go"),
        pytest.param(BAD, False, id="I stay, so go"),
        pytest.param(step('{"thoughts": "going", "action": "go"}'), False, id="part of a word"),
    ],
)
def test_thoughts_that_do_not_name_their_action(answer: Step, named: bool) -> None:
    assert names_its_action(answer) is named


def test_the_share_of_them_is_told(tmp_path: Path) -> None:
    shown = page(tmp_path / "run", [episode(GOOD), episode(BAD)], [PAIR])
    assert "do not name their action 50.0" in shown.section("preferences")


def test_odds_are_those_of_the_action_tokens_alone() -> None:
    start, stop = GOOD.action.action_span
    expected = exp(sum(GOOD.completion.logprobs[start:stop]))
    assert action_probability(GOOD) == pytest.approx(expected)
    silent = replace(GOOD, action=replace(GOOD.action, action_span=Span(3, 3)))
    assert action_probability(silent) is None
    assert odds_of("", [episode(GOOD, silent)]).probabilities_N.tolist() == [
        pytest.approx(expected)
    ]
