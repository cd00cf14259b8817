"""`forethought report RUN`, as typed."""

from pathlib import Path

import pytest

from forethought.cli.main import main
from tests.unit.reports.builders import make_run


def test_it_prints_where_the_page_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run")
    assert main(["report", str(run)]) == 0
    out, err = capsys.readouterr()
    assert out == f"{run / 'report.html'}\n"
    assert err == ""
    assert (run / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing", "does not exist — expected a run folder"),
        ("", "is not a run folder: config.yaml is missing"),
    ],
)
def test_what_is_no_run_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, reason: str
) -> None:
    path = tmp_path / name
    assert main(["report", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"error: {path}: {reason}\n"


def test_a_page_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    (run / ".report.html.tmp").mkdir()
    assert main(["report", str(run)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"error: {run / 'report.html'}: cannot be written: Is a directory\n"
