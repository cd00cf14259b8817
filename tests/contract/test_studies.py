"""Every study in configs/studies/ is read, and its head says how it is run; the smallest runs."""

import json
from pathlib import Path

import pytest

from forethought.cli.main import main
from forethought.studies.config import load_study
from forethought.studies.plan import plan_study

ROOT = Path(__file__).parents[2]
STUDIES = sorted((ROOT / "configs" / "studies").glob("*.yaml"))


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in STUDIES])
def test_a_study(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    study = load_study(path)
    assert study.name == path.stem
    assert plan_study(path, study, Path("runs"), "0").runs()
    command = f"#   forethought study configs/studies/{path.name}\n"
    assert command in path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_smallest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    output, results = tmp_path / "runs", tmp_path / "results"
    words = ["study", "configs/studies/bandit.yaml", "--output", str(output)]
    assert main([*words, "--results", str(results)]) == 0
    data = json.loads((results / "results.json").read_text(encoding="utf-8"))
    assert [run["state"] for run in data["runs"]] == ["finished"] * 6
    assert {path.name for path in results.iterdir()} == {
        *("table.md", "results.json", "success.svg", "curves.svg")
    }
    for stage in data["stages"]:
        low, high = stage["pooled"]["success_interval"]
        assert low <= stage["pooled"]["success_rate"] <= high
