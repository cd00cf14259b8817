"""The page of a data set in a real browser: its replay, on a desk and on a phone."""

import re
from pathlib import Path

from playwright.sync_api import Browser

from forethought.data.description import describe
from forethought.reports.dataset import write_dataset_page
from forethought.rollouts.store import read_shards, write_shard
from tests.browser.browser import PHONE, visit
from tests.browser.test_report import long_episode, overhang
from tests.unit.reports.builders import HOSTILE, episode, lost, step, won


def page_of(folder: Path) -> Path:
    text = re.sub(r"[\ud800-\udfff]", "", HOSTILE)
    played = [won(), long_episode(), lost(), episode(step(text, message=text, last=True))]
    write_shard(folder / "a.parquet", played)
    page = folder / "description.html"
    write_dataset_page(describe(folder, gamma=1.0), read_shards(folder), page)
    return page


def test_episodes_are_replayed(browser: Browser, tmp_path: Path) -> None:
    with visit(browser, page_of(tmp_path)) as visited:
        assert visited.text("#episode-title") == "Episode 3", "the first failure"
        assert visited.page.locator("#episode-list button").count() == 4
        visited.page.keyboard.press("ArrowRight")
        assert visited.text("#position") == "Step 2 of 2."
        assert visited.page.locator("#distributions figure").count() == 6


def test_a_phone_never_scrolls_sideways(browser: Browser, tmp_path: Path) -> None:
    with visit(browser, page_of(tmp_path), size=PHONE) as visited:
        assert overhang(visited) == []
