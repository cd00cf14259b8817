"""A run's report in a real browser: what a reader clicks, types and sees."""

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from forethought.reports import write_report
from forethought.runs.pairs import CompletionPlace, PairPlace, write_pairs
from forethought.types import Metric, Trajectory
from tests.browser.browser import PHONE, Visit, visit
from tests.unit.reports.builders import (
    SFT,
    episode,
    evaluation,
    image,
    lost,
    make_run,
    step,
    won,
)

LOG = tuple(
    f'{{"episodes": 8, "success_rate": {rate}, "mean_return": {rate - 1}, "entropy": 0.25, '
    f'"loss": 0.5, "approximate_kl": 0.01, "value_loss": 0.25, "odd": {rate}}}'
    for rate in (0.25, 0.5, 0.875)
)
TEXT = '{\n"number": "3",\n"thoughts": "3 is less than 5, so I go on",\n"action": "go"\n}'


def long_episode() -> Trajectory:
    steps = [
        step(TEXT, image=image(40 * number, 64), value=0.5, message=f"Place {number}", key="k" * 90)
        for number in range(5)
    ]
    steps.append(step(TEXT, reward=1.0, last=True, message="Place 5"))
    played = replace(episode(*steps, seed=7, success=True), metrics=(Metric("progress", 1.0),))
    return replace(played, task_type="a_kind_of_task_with_a_very_long_name_that_has_no_blank")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a run")
    make_run(
        folder / "runs" / "sft",
        SFT,
        judged=evaluation(0.25),
        held_out=[lost(seed=7), lost(), won()],
    )
    run = make_run(
        folder / "runs" / "ppo",
        metrics=LOG,
        timings=('{"collect_s": 3, "update_s": 1}',),
        judged=evaluation(0.75),
        held_out=[won(), long_episode(), lost(), lost(seed=6)],
        training=[lost(), won()],
        versions="python 3.11\n",
    )
    pair = PairPlace(CompletionPlace(1, 0, 1.0), CompletionPlace(0, 0, -1.0))
    write_pairs(run / "pairs" / "step_000004_process_0.jsonl", [pair])
    return write_report(run)


def shown(visited: Visit) -> tuple[str, str]:
    """Which episode and which step."""
    return visited.text("#episode-title"), visited.text("#position")


def open_episode(visited: Visit, number: int) -> None:
    name = f"Episode {number}"
    visited.page.locator("#episode-list button", has_text=name).first.click()


# Replay: buttons and keys


def test_buttons_go_from_step_to_step_and_stop_at_the_ends(browser: Browser, report: Path) -> None:
    with visit(browser, report) as visited:
        open_episode(visited, 2)
        assert shown(visited) == ("Episode 2", "Step 1 of 6.")
        assert "Place 0" in visited.text("#prompt")
        visited.page.click("#next")
        assert shown(visited) == ("Episode 2", "Step 2 of 6.")
        assert "Place 1" in visited.text("#prompt")
        visited.page.click("#previous")
        visited.page.click("#previous", force=True)  # it is disabled, and stays where it is
        assert shown(visited) == ("Episode 2", "Step 1 of 6.")
        visited.page.locator("#steps button").nth(5).click()
        visited.page.click("#next", force=True)
        assert shown(visited) == ("Episode 2", "Step 6 of 6.")
        assert visited.page.get_attribute("#next", "aria-disabled") == "true"
        assert visited.page.url.endswith("#episode-2-step-6")


def test_arrow_keys_go_from_step_to_step(browser: Browser, report: Path) -> None:
    with visit(browser, report) as visited:
        open_episode(visited, 2)
        for _ in range(3):
            visited.page.keyboard.press("ArrowRight")
        visited.page.keyboard.press("ArrowLeft")
        assert shown(visited) == ("Episode 2", "Step 3 of 6.")
        visited.page.keyboard.press("Control+ArrowRight")
        assert shown(visited) == ("Episode 2", "Step 3 of 6."), (
            "with Control a key is the browser's"
        )


def test_in_a_completion_arrow_keys_go_from_token_to_token(browser: Browser, report: Path) -> None:
    with visit(browser, report) as visited:
        open_episode(visited, 2)
        visited.page.locator("#completion .token").first.focus()
        visited.page.keyboard.press("ArrowRight")
        assert "token 2, id 1, probability 88.2 %" in visited.text("#token-detail")
        assert shown(visited) == ("Episode 2", "Step 1 of 6."), "the step stays"


def test_a_link_opens_its_step(browser: Browser, report: Path) -> None:
    with visit(browser, report, fragment="#episode-2-step-4") as visited:
        assert shown(visited) == ("Episode 2", "Step 4 of 6.")
    with visit(browser, report, fragment="#episode-99-step-4") as visited:
        assert shown(visited)[1].startswith("Step 1 of")


def test_home_and_end_go_to_the_first_and_last_step(browser: Browser, report: Path) -> None:
    with visit(browser, report) as visited:
        open_episode(visited, 2)
        visited.page.keyboard.press("End")
        assert shown(visited) == ("Episode 2", "Step 6 of 6.")
        visited.page.keyboard.press("Home")
        assert shown(visited) == ("Episode 2", "Step 1 of 6.")


def test_an_episode_plays_to_its_end_and_stops(browser: Browser, report: Path) -> None:
    with visit(browser, report) as visited:
        open_episode(visited, 2)
        visited.page.click("#play")
        visited.page.get_by_text("Step 6 of 6.").wait_for()
        visited.page.get_by_label("Play the episode").wait_for()


def test_playing_is_paused_by_its_button_and_by_a_key(browser: Browser, report: Path) -> None:
    with visit(browser, report) as visited:
        open_episode(visited, 2)
        visited.page.click("#play")
        visited.page.get_by_label("Pause").click()
        visited.page.get_by_label("Play the episode").click()
        visited.page.keyboard.press("ArrowRight")
        assert visited.page.get_by_label("Play the episode").is_visible()


def test_the_page_opens_on_the_first_failure(browser: Browser, report: Path) -> None:
    with visit(browser, report) as visited:
        assert shown(visited)[0] == "Episode 3"
        assert "opens on the first failure" in visited.text("#replay .lead")
        assert visited.page.locator("section").first.get_attribute("id") == "replay"


# Filters


def test_filters_list_failures_or_successes(browser: Browser, report: Path) -> None:
    with visit(browser, report) as visited:
        listed = visited.page.locator("#episode-list button")
        assert listed.count() == 4
        visited.page.get_by_role("button", name="Failures 2").click()
        assert listed.all_inner_texts()[0].split()[:3] == ["✕", "Episode", "3"]
        assert listed.count() == 2
        assert visited.text("#episode-outcome") == "failure"
        visited.page.get_by_role("button", name="Successes 2").click()
        assert listed.count() == 2
        assert visited.text("#episode-outcome") == "success"
        visited.page.get_by_role("button", name="All 4").click()
        assert listed.count() == 4


# Folding


def test_what_is_folded_opens_and_closes(browser: Browser, report: Path) -> None:
    with visit(browser, report) as visited:
        fold = visited.page.locator("#setup details").first
        text = fold.locator("pre")
        assert not text.is_visible()
        fold.locator("summary").click()
        assert text.is_visible()
        fold.locator("summary").press("Enter")
        assert not text.is_visible()


def test_four_charts_are_open_and_the_others_folded(browser: Browser, report: Path) -> None:
    with visit(browser, report) as visited:
        charts = visited.page.locator("#curves figure")
        seen = [chart.is_visible() for chart in charts.all()]
        assert seen == [True] * 4 + [False] * (len(seen) - 4)
        assert len(seen) > 4
        visited.page.get_by_text("More charts").click()
        visited.page.get_by_text("Other logged metrics").click()
        assert all(chart.is_visible() for chart in charts.all())


# Pairs


def test_a_pair_stands_in_two_columns(browser: Browser, report: Path) -> None:
    with visit(browser, report) as visited:
        chosen, rejected = (
            visited.page.locator(f"#preferences article.is-{kind}").bounding_box()
            for kind in ("chosen", "rejected")
        )
        assert chosen is not None
        assert rejected is not None
        assert chosen["y"] == rejected["y"]
        assert chosen["x"] + chosen["width"] < rejected["x"]


# A phone


def test_results_are_cards_on_a_phone(browser: Browser, report: Path) -> None:
    with visit(browser, report, size=PHONE) as visited:
        card = visited.page.locator("#results tr.this-run")
        box = card.bounding_box()
        assert box is not None
        assert box["width"] <= PHONE[0]
        assert not visited.page.locator("#results thead").first.is_visible()
        line = card.locator("td", has_text="12.5").first
        named = "e => getComputedStyle(e, '::before').content"
        assert line.evaluate(named) == '"Invalid"'


def test_a_phone_never_scrolls_sideways(browser: Browser, report: Path) -> None:
    with visit(browser, report, size=PHONE) as visited:
        for fold in visited.page.locator("details").all():
            fold.locator("> summary").click()
        for number in range(4):
            visited.page.locator("#episode-list button").nth(number).click()
            assert overhang(visited) == []


def overhang(visited: Visit) -> list[str]:
    """What makes the page wider than its window: elements that nothing around them cuts off."""
    return visited.page.evaluate(
        """() => {
          const width = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= width) return [];
          return [...document.querySelectorAll("body *")]
            .filter((e) => e.getBoundingClientRect().right > width + 0.5)
            .map((e) => `${e.tagName}.${e.className} ${e.getBoundingClientRect().right}`);
        }"""
    )
