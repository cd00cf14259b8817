"""Where the time went, summed by hand."""

from pathlib import Path

from forethought.reports.curves import timing_section
from forethought.reports.inputs import read_run
from tests.unit.reports.builders import Page, make_run


def page_of(tmp_path: Path, *lines: str) -> Page:
    return Page(timing_section(read_run(make_run(tmp_path / "run", timings=lines))))


def test_durations_are_summed_over_the_run(tmp_path: Path) -> None:
    page = page_of(
        tmp_path,
        '{"collect_s": 30, "update_s": 100, "nap_s": 0}',
        '{"collect_s": 10, "update_s": 60, "own_s": null}',
        '{"own_s": 0.5}',
    )
    [section] = page.all("div", "timing")
    assert "3 min 20 s in all" in section.text.replace("\u202f", " ")
    shown = [item.text.replace("\u202f", " ") for item in page.all("li")]
    assert shown == [
        "collecting steps 20 % 40.0 s",
        "updating weights 80 % 2 min 40 s",
        "own_s 0 % 0.5 s",
    ]
    widths = [e.attributes["style"] for e in page.all("i") if "style" in e.attributes]
    assert widths == ["flex-grow:0.1995", "flex-grow:0.7980", "flex-grow:0.0025"]


def test_speeds_are_medians_and_no_durations(tmp_path: Path) -> None:
    page = page_of(
        tmp_path,
        '{"tokens_per_s": 1000}',
        '{"tokens_per_s": 9000, "games_per_s": 3.5}',
        '{"tokens_per_s": 8223.7, "idle_per_s": null}',
    )
    [section] = page.all("div", "timing")
    assert section.text.startswith("Speed")
    shown = [item.text for item in page.all("li")]
    assert shown == ["tokens per second: 8,224 median", "games per second: 3.5 median"]


def test_where_no_clock_ran_there_is_nothing(tmp_path: Path) -> None:
    assert page_of(tmp_path).elements == []
    assert timing_section(read_run(make_run(tmp_path / "a", timings=['{"x_s": 0}']))) == ""


def test_a_timing_may_have_any_name(tmp_path: Path) -> None:
    page = page_of(tmp_path, '{"<img>_s": 1, "<b>_per_s": 2}')
    assert not page.all("img")
    assert "<img>_s" in page.all("li")[0].text
