"""The page of a data set: self-contained, escaped, and with the numbers that were counted."""

import json
import re
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from forethought.data.description import describe
from forethought.reports.dataset import render_dataset, write_dataset_page
from forethought.reports.histograms import bars, draw_histogram
from forethought.reports.markup import short
from forethought.rollouts.store import read_shards, write_shard
from forethought.targets.reward_map import RewardMap, write_reward_map
from tests.unit.data.builders import make_trajectory
from tests.unit.reports.builders import Page


@pytest.fixture
def page(tmp_path: Path) -> str:
    write_shard(
        tmp_path / "a.parquet",
        [
            make_trajectory(0.0, 1.0, success=True),
            make_trajectory(-2.0, seed=1, task_type="<script>alert(1)</script>"),
        ],
    )
    write_reward_map(tmp_path, RewardMap(-5.0, 5.0))
    return render_dataset(describe(tmp_path, gamma=1.0), [*read_shards(tmp_path)])


def test_the_page_needs_nothing_beside_itself(page: str) -> None:
    assert not re.search(r'(src|href)="(?!#)', page)
    assert page.count("<script") == 2, "the episodes as data, and what replays them"
    assert "default-src 'none'" in page
    assert "$" not in page.partition("</style>")[2].partition("<script")[0]


def test_the_page_shows_what_was_counted(page: str) -> None:
    assert page.count('<svg class="chart"') == 6
    assert "mean −0.5, median −2, −2 to 1" in page
    assert "The declared reward map takes −5 to 0 and 5 to 1." in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_episodes_of_the_data_set_are_replayed(page: str) -> None:
    parsed = Page(page)
    replay = json.loads(parsed.with_id("replay-data").text)
    assert [episode["outcome"] for episode in replay["episodes"]] == ["success", "failure"]
    assert replay["opening"] == 1
    assert "All trajectories of the data set: 1 success and 1 failure; 2 are shown." in (
        parsed.section("replay")
    )


def test_of_a_large_data_set_the_beginning_is_read(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.parquet", 3 * [make_trajectory(0.0, 1.0)])
    description = describe(tmp_path, gamma=1.0)
    page = Page(render_dataset(description, [*islice(read_shards(tmp_path), 2)]))
    assert "The first 2 of 3 trajectories: " in page.section("replay")


def test_equal_data_give_equal_bytes(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.parquet", [make_trajectory(0.0, 1.0)])
    pages = []
    for name in ("one.html", "two.html"):
        write_dataset_page(describe(tmp_path, gamma=1.0), read_shards(tmp_path), tmp_path / name)
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]


def test_few_whole_numbers_have_a_bar_each() -> None:
    drawn = bars(np.array([-1.0, 0.0, 2.0]), np.array([3, 1, 5]))
    assert drawn.lefts_B.tolist() == [-1.5, -0.5, 0.5, 1.5]
    assert (drawn.width, drawn.counts_B.tolist()) == (1.0, [3, 1, 0, 5])


def test_other_numbers_share_equal_intervals() -> None:
    drawn = bars(np.array([0.0, 0.25, 1.0]), np.array([2, 1, 4]))
    assert len(drawn.counts_B) == 40
    assert drawn.width == pytest.approx(1 / 40)
    assert {n: int(drawn.counts_B[n]) for n in np.flatnonzero(drawn.counts_B)} == {
        0: 2,
        10: 1,
        39: 4,
    }


def test_a_single_value_has_one_bar() -> None:
    drawn = bars(np.array([0.3]), np.array([7]))
    assert (drawn.width, drawn.counts_B.tolist()) == (pytest.approx(0.3), [7])
    assert drawn.lefts_B.tolist() == [pytest.approx(0.15)]


@pytest.mark.parametrize("value", [0.0, 0.0371, 5.0, -12345.678])
def test_a_single_value_is_the_only_tick_of_its_axis(value: float) -> None:
    svg = draw_histogram(
        np.array([value]), np.array([7]), name="x", description="x", x_label="x", y_label="y"
    )
    texts = ["".join(text.itertext()).strip() for text in ElementTree.fromstring(svg).iter("text")]
    assert texts[: texts.index("x")] == [short(value)]


def test_an_axis_of_numbers_between_0_and_1_has_ticks() -> None:
    svg = draw_histogram(
        np.array([0.2, 0.31, 0.4]),
        np.array([1, 2, 1]),
        name="x",
        description="x",
        x_label="x",
        y_label="y",
    )
    assert ">0.2<" in svg
    assert ">0.3<" in svg
