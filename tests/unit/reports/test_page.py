"""The whole page: every section with and without its data, in one file that loads nothing."""

import base64
import errno
import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from forethought.configs.parts import EnvironmentConfig
from forethought.errors import RunFolderError, StorageError
from forethought.reports import write_report
from forethought.types import Metric, Trajectory
from tests.unit.reports.builders import (
    HOSTILE,
    PPO,
    SFT,
    Page,
    crashed,
    episode,
    evaluation,
    image,
    lost,
    make_run,
    never_begun,
    step,
    unfinished,
    won,
)

LOG = (
    '{"episodes": 8, "success_rate": 0.5, "mean_return": -1.5, "entropy": 0.25, "odd": 1}',
    '{"episodes": 6, "success_rate": 1.0, "mean_return": 0.5, "entropy": 0.125, "odd": 2}',
)
TIMINGS = ('{"collect_s": 3, "update_s": 1}',)


def written(run: Path) -> Page:
    return Page(write_report(run).read_text(encoding="utf-8"))


def full_run(folder: Path) -> Path:
    """PPO that began with SFT, with everything that a run may hold."""
    make_run(folder / "runs" / "sft", SFT, judged=evaluation(0.55))
    seen = [step(image=image(number), value=0.5, last=number == 2) for number in range(3)]
    return make_run(
        folder / "runs" / "ppo",
        metrics=LOG,
        timings=TIMINGS,
        judged=evaluation(0.975),
        held_out=[won(), lost(), episode(*seen, success=True), crashed()],
        training=[unfinished()],
        versions="python 3.11\n",
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return full_run(tmp_path_factory.mktemp("full"))


@pytest.fixture(scope="module")
def page(run: Path) -> Page:
    return written(run)


# Sections, with and without their data


def test_a_full_run_fills_every_section(page: Page) -> None:
    assert page.all("title")[0].text == "PPO on NumberLine"
    assert "SFTwhere this run began55.0 %" in page.section("results")
    assert len(page.all("figure")) == 5
    assert "Where the time went" in page.section("curves")
    assert "Held-out episodes: 2 successes and 1 failure; 3 are shown." in page.section("replay")
    assert "1 episode was lost to crashes or timeouts of the environment." in page.section("replay")
    assert "python 3.11" in page.section("setup")
    assert not page.all("p", "notice")[1:], "but the one for readers without JavaScript"


def test_a_run_of_settings_alone(tmp_path: Path) -> None:
    page = written(make_run(tmp_path / "run"))
    assert "was not evaluated on held-out episodes yet" in page.section("results")
    assert "Nothing is logged yet" in page.section("curves")
    assert "No episodes are stored" in page.section("replay")
    assert "Versions unknown" in page.section("setup")
    assert json.loads(page.with_id("replay-data").text) is None


def test_a_run_of_sft(tmp_path: Path) -> None:
    lines = ['{"loss": 2.5}', '{"loss": 0.5}']
    page = written(
        make_run(tmp_path / "run", SFT, metrics=lines, judged=evaluation(0.5), held_out=[won()])
    )
    assert page.all("title")[0].text == "SFT on NumberLine"
    assert [figure.text.strip()[:4] for figure in page.all("figure")] == ["Loss"]
    assert "1 success and 0 failures; 1 is shown." in page.section("replay")


def test_a_run_of_ppo_before_its_evaluation(tmp_path: Path) -> None:
    page = written(make_run(tmp_path / "run", metrics=LOG, timings=TIMINGS, training=[won()]))
    assert not page.all("table")
    assert "Training episodes of step_000004_process_0.parquet, as no held-out ones are stored" in (
        page.section("replay")
    )


@pytest.mark.parametrize(
    ("played", "sentence", "shown"),
    [
        pytest.param(
            [unfinished(), unfinished(), crashed()],
            "0 successes and 0 failures; 2 are shown. None of them is finished. "
            "1 episode was lost to crashes or timeouts of the environment.",
            2,
            id="none has ended",
        ),
        pytest.param([unfinished(), won()], "1 success and 0 failures; 1 is shown.", 1, id="one"),
        pytest.param(
            [crashed(), never_begun()],
            "0 successes and 0 failures; 0 are shown. "
            "2 episodes were lost to crashes or timeouts of the environment.",
            0,
            id="the environment always crashes",
        ),
        pytest.param([], "0 successes and 0 failures; 0 are shown.", 0, id="an empty shard"),
    ],
)
def test_what_was_played_is_told(
    tmp_path: Path, played: Sequence[Trajectory], sentence: str, shown: int
) -> None:
    page = written(make_run(tmp_path / "run", training=played))
    assert sentence in page.section("replay")
    data = json.loads(page.with_id("replay-data").text)
    assert (len(data["episodes"]) if data else 0) == shown
    assert bool(page.all("noscript")) is (shown > 0)


# One file, always the same


def test_an_unchanged_run_gives_the_same_bytes(run: Path, page: Page) -> None:
    before = (run / "report.html").read_bytes()
    write_report(run)
    assert (run / "report.html").read_bytes() == before


def test_a_copy_of_a_run_gives_the_same_bytes(tmp_path: Path) -> None:
    """Where the folder lies, and what was written first, leaves no trace."""
    pages: list[bytes] = []
    for name in ("a", "b"):
        run = full_run(tmp_path / name)
        os.utime(run / "metrics.jsonl", (0, 0))
        pages.append(write_report(str(run)).read_bytes())
    assert pages[0] == pages[1]


def test_the_page_loads_nothing(page: Page, run: Path) -> None:
    for element in page.elements:
        for name in ("src", "href", "action", "poster", "srcset", "data", "xlink:href"):
            value = element.attributes.get(name, "#")
            assert value.startswith(("#", "data:image/")), (element.tag, name, value[:80])
    assert not {"link", "iframe", "object", "embed", "base"} & {e.tag for e in page.elements}
    html = (run / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|@import|url\((?!#)", html)


def test_a_browser_may_run_one_script_only(page: Page) -> None:
    [policy] = [
        meta.attributes["content"]
        for meta in page.all("meta")
        if meta.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    [data, script] = page.all("script")
    assert data.attributes["type"] == "application/json"
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert rules["img-src"] == "data:"


def test_the_script_builds_no_html_from_strings(page: Page) -> None:
    script = page.all("script")[1].text
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(", script
    )


def test_the_script_finds_every_element_that_it_asks_for(page: Page) -> None:
    asked = set(re.findall(r'(?:byId|getElementById)\("([^"]+)"\)', page.all("script")[1].text))
    assert len(asked) > 10
    assert asked <= {e.attributes["id"] for e in page.elements if "id" in e.attributes}


def test_every_link_inside_the_page_leads_somewhere(page: Page) -> None:
    ids = [e.attributes["id"] for e in page.elements if "id" in e.attributes]
    assert len(set(ids)) == len(ids)
    targets = {e.attributes["href"][1:] for e in page.elements if "href" in e.attributes}
    assert targets <= set(ids)


# What a model writes is shown, never run


def test_hostile_text_changes_nothing_of_the_page(tmp_path: Path) -> None:
    """The same elements and attributes in the same order, wherever the text may come from."""
    calm = written(_told_by('calm {"action": "go"}', tmp_path / "calm"))
    hostile = written(_told_by(HOSTILE, tmp_path / "hostile"))
    # Tokens differ in number; nothing else may.
    outlines = [
        [(e.tag, tuple(e.attributes)) for e in page.elements if not _is_token(e.attributes)]
        for page in (calm, hostile)
    ]
    assert outlines[0] == outlines[1]
    assert not any(name.startswith("on") for e in hostile.elements for name in e.attributes)
    content = json.loads(hostile.with_id("replay-data").text)
    assert content["texts"] == [HOSTILE]
    assert content["episodes"][0]["steps"][0]["state_key"] == HOSTILE


def _is_token(attributes: dict[str, str]) -> bool:
    return bool(re.fullmatch(r"heat-\d", attributes.get("class", "")))


def _told_by(text: str, path: Path) -> Path:
    """A run in which a model, an environment and a person wrote this, each where they can."""
    played = episode(step(text, message=text, key=text, is_valid=False, last=True))
    played = replace(played, task_type=text, metrics=(Metric(text, 1.0),))
    encodable = re.sub(r"[\ud800-\udfff\x00]", "", text)
    metrics = ['{"loss": 1, %s: 1}' % json.dumps(encodable)]  # noqa: UP031
    environment = EnvironmentConfig(id=encodable)
    config = replace(PPO, model=encodable, output=f"runs/{encodable}", environment=environment)
    return make_run(path, config, metrics=metrics, held_out=[played], versions=encodable)


# What the disk refuses


def test_a_folder_that_cannot_be_written_is_one_line(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Permissions stop no administrator, so the refusal is made."""
    before = (run / "report.html").read_bytes()
    opened = Path.open

    def refuse(path: Path, mode: str = "r", **options: object) -> object:
        if "w" in mode:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return opened(path, mode, **options)  # pyright: ignore[reportArgumentType, reportCallIssue]

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(StorageError) as error:
        write_report(run)
    assert str(error.value) == f"{run / 'report.html'}: cannot be written: Read-only file system"
    assert (run / "report.html").read_bytes() == before


def test_a_folder_without_permission_is_one_line(tmp_path: Path) -> None:
    """The same for everyone whom permissions do stop."""
    run = make_run(tmp_path / "run")
    (run / ".report.html.tmp").mkdir()
    with pytest.raises(StorageError, match=r"report\.html: cannot be written: Is a directory$"):
        write_report(run)


def test_a_folder_that_is_no_run_is_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="is not a run folder"):
        write_report(tmp_path)
    assert not list(tmp_path.iterdir())
