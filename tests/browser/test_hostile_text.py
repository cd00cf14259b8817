"""What a model writes is shown by the browser, and never run."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from forethought.reports import write_report
from tests.browser.browser import visit
from tests.unit.reports.builders import HOSTILE, PPO, episode, make_run, step

RUNS_CODE = "window.wasRun = true"
ATTACKS = {
    "script": f"<script>{RUNS_CODE}</script>",
    "end of the data": f"</script><script>{RUNS_CODE}</script>",
    "event attribute": f'<img src="x" onerror="{RUNS_CODE}"><svg onload="{RUNS_CODE}">',
    "end of an attribute": f'" autofocus onfocus="{RUNS_CODE}" x="',
    "link": f'<a href="javascript:{RUNS_CODE}">go</a><iframe src="javascript:{RUNS_CODE}">',
    "request": '<img src="http://127.0.0.1:9/x"><link rel=stylesheet href="http://127.0.0.1:9/y">',
    "comment": f"<!-- --><script>{RUNS_CODE}</script><!-- ",
    "template": "${alert(1)} {{constructor.constructor('alert(1)')()}} $style",
    "everything": HOSTILE,
}


@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS.keys())
def test_an_attack_is_text(browser: Browser, tmp_path: Path, text: str) -> None:
    played = episode(step(text, message=text, key=text, is_valid=False, last=True))
    report = write_report(make_run(tmp_path / "run", PPO, held_out=[played]))
    with visit(browser, report) as visited:
        page = visited.page
        page.locator("#completion .token").first.click()
        page.keyboard.press("ArrowRight")
        assert page.evaluate("window.wasRun") is None
        assert page.locator("#replay a, #replay iframe, #replay img, #replay svg").count() == 0
        assert page.locator("script").count() == 2
        for where in ("#completion", "#prompt", "#action"):
            assert as_read(text) in page.locator(where).text_content().replace("↵", "")


def as_read(text: str) -> str:
    """The start of it, less what is shown by its number."""
    return re.split(r"[\x00-\x1f\u2028\u2029\u202e\ud800-\udfff]", text)[0]


def test_control_characters_are_seen_and_do_nothing(browser: Browser, tmp_path: Path) -> None:
    text = 'a\x00b\x1b[31mc\x7fd\u202eevil\u2066e\u200b{"action": "go"}'
    played = episode(step(text, is_valid=False, last=True))
    report = write_report(make_run(tmp_path / "run", PPO, held_out=[played]))
    with visit(browser, report) as visited:
        shown = visited.page.locator("#completion").text_content()
        assert shown is not None
        for sign in ("␀", "␛", "⟨U+007F⟩", "⟨U+202E⟩", "⟨U+2066⟩", "⟨U+200B⟩"):
            assert sign in shown
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u200b\u202a-\u202e\u2066-\u2069]", shown)


def test_the_page_needs_no_script_to_show_an_episode(browser: Browser, tmp_path: Path) -> None:
    text = ATTACKS["end of the data"]
    played = episode(step(text, message=text, last=True))
    report = write_report(make_run(tmp_path / "run", PPO, held_out=[played]))
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.resolve().as_uri())
    assert text in page.locator("#replay noscript .completion").first.inner_text()
    context.close()
