"""One episode by two policies, and claims marked where they are wrong."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from forethought.reports.inputs import read_run
from forethought.reports.page import before_after_section, choose_pairs, render
from forethought.reports.replay import shown_thoughts
from forethought.reports.replay_html import claims_list
from forethought.types import Claim, ThoughtFacts, Trajectory
from tests.unit.reports.builders import (
    HOSTILE,
    SFT,
    Page,
    episode,
    evaluation,
    lost,
    make_run,
    step,
    won,
)

FACTS = ThoughtFacts(
    perceived=(Claim("current number", "4", "4"), Claim("target number", "1", "0")),
    inferred=(Claim("comparison", None, "4 is larger than 0"),),
    concluded_actions=("go",),
)


def thinking(trajectory: Trajectory, facts: ThoughtFacts = FACTS) -> Trajectory:
    steps = tuple(replace(one, thought_facts=facts) for one in trajectory.steps)
    return replace(trajectory, steps=steps)


def runs(tmp_path: Path, before: list[Trajectory] | None, after: list[Trajectory]) -> Path:
    make_run(tmp_path / "runs" / "sft", SFT, judged=evaluation(0.5), held_out=before)
    return make_run(tmp_path / "runs" / "ppo", judged=evaluation(0.9), held_out=after)


def test_what_was_lost_before_and_won_after_comes_first(tmp_path: Path) -> None:
    before = [won(1), lost(2), lost(3)]
    after = [won(1), won(2), lost(3)]
    assert [pair.number for pair in choose_pairs(before, after)] == [2, 1]
    page = Page(before_after_section(read_run(runs(tmp_path, before, after))))
    assert [title.text for title in page.all("h3")] == ["Episode 2"]
    assert [title.text for title in page.all("summary")] == ["Episode 1"], "the other is folded"
    heads = [title.text for title in page.all("h4")]
    assert heads[0].startswith("SFT, before failure")
    assert heads[1].startswith("PPO, after success")


def test_an_episode_with_a_middle_comes_before_one_of_a_single_step(tmp_path: Path) -> None:
    at_once = episode(step(reward=1.0, last=True), seed=1, success=True)
    assert [pair.number for pair in choose_pairs([lost(1), lost(2)], [at_once, won(2)])] == [2, 1]


def test_steps_after_the_third_are_folded(tmp_path: Path) -> None:
    long = episode(*(4 * [step()]), step(last=True), seed=1)
    page = Page(before_after_section(read_run(runs(tmp_path, [long], [won(1)]))))
    assert [title.text for title in page.all("summary")] == ["2 more steps"]
    assert len(page.all("li")) == 5 + 2


@pytest.mark.parametrize(
    ("options", "is_shown"),
    [
        pytest.param(("expert=random_choice",), True, id="another expert, the same environment"),
        pytest.param(("targets=far",), False, id="another environment"),
    ],
)
def test_a_start_counts_where_its_environment_has_the_same_rules(
    tmp_path: Path, options: tuple[str, ...], is_shown: bool
) -> None:
    sft = replace(SFT, environment=replace(SFT.environment, options=options))
    make_run(tmp_path / "runs" / "sft", sft, judged=evaluation(0.5), held_out=[lost(1)])
    run = make_run(tmp_path / "runs" / "ppo", judged=evaluation(0.9), held_out=[won(1)])
    assert bool(before_after_section(read_run(run))) is is_shown


def test_only_equal_seeds_are_compared(tmp_path: Path) -> None:
    assert choose_pairs([won(1)], [won(2)]) == []
    assert before_after_section(read_run(runs(tmp_path, [won(1)], [won(2)]))) == ""


def test_without_the_starts_episodes_there_is_nothing_to_compare(tmp_path: Path) -> None:
    assert before_after_section(read_run(runs(tmp_path, None, [won(2)]))) == ""
    alone = make_run(tmp_path / "alone", judged=evaluation(0.9), held_out=[won(1)])
    assert before_after_section(read_run(alone)) == ""


def test_a_wrong_claim_is_marked_beside_the_truth() -> None:
    shown = shown_thoughts(replace(step(), thought_facts=FACTS))
    page = Page(claims_list(shown))
    assert [line.text for line in page.all("li", "right")] == [
        "✓ current number: 4",
        "✓ concludes: go",
    ]
    assert [line.text for line in page.all("li", "wrong")] == [
        "✕ target number: 1, true is 0",
        "✕ comparison: not said, true is 4 is larger than 0",
    ]
    stray = replace(FACTS, concluded_actions=("stay", "wait"))
    page = Page(claims_list(shown_thoughts(replace(step(), thought_facts=stray))))
    assert page.all("li", "wrong")[-1].text == "✕ concludes: stay or wait, does something else"
    assert claims_list(shown_thoughts(step())) == ""


def test_claims_reach_the_viewer_and_obey_nobody(tmp_path: Path) -> None:
    facts = ThoughtFacts((Claim(HOSTILE, HOSTILE, HOSTILE),), (), (HOSTILE,))
    html = render(read_run(runs(tmp_path, [thinking(lost(1), facts)], [thinking(won(1), facts)])))
    assert HOSTILE not in html
    data = json.loads(Page(html).with_id("replay-data").text)
    [first, *_] = data["episodes"][0]["steps"]
    assert first["thoughts"] == [[[HOSTILE, HOSTILE, HOSTILE, True]], [HOSTILE], False]
