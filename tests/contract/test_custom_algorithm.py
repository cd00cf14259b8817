"""An algorithm of a package outside is one folder and one line: an entry point."""

import subprocess
import sys
from pathlib import Path

import pytest

import forethought as ft
from forethought.algorithms.registry import algorithm, algorithm_names, summaries
from forethought.cli.main import main
from forethought.errors import ConfigError
from tests.entry_points import declare, install


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder into which the example was installed, and in which a person works."""
    site = tmp_path / "site-packages"
    install("custom_algorithm", site)
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(tmp_path)
    return site


@pytest.mark.usefixtures("installed")
def test_it_trains_evaluates_reports_and_explains_itself(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    assert "  train table " in capsys.readouterr().out
    assert main(["train", "table", "--help"]) == 0
    assert "Rows of the table; a prompt's row is a checksum" in capsys.readouterr().out
    assert main(["train", "table", "--output", "runs/table", "--seed", "3"]) == 0
    assert "\nalgorithm: table\n" in "\n" + Path("runs/table/config.yaml").read_text()
    assert main(["evaluate", "runs/table", "--episodes", "50"]) == 0
    assert main(["report", "runs/table"]) == 0
    page = Path("runs/table/report.html").read_text(encoding="utf-8")
    assert "TABLE on Bandit" in page
    assert "800 environment steps" in page
    assert main(["train", "table", "--resume", "runs/table"]) == 0
    assert "had finished already" in capsys.readouterr().err
    run = ft.train("table", output="runs/again", seed=3)
    assert ft.evaluate(run, episodes=50).success.rate >= 0.9


def test_help_imports_no_loop_of_a_package_outside(installed: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(installed)!r})\n"
        "from forethought.algorithms.registry import summaries\n"
        "assert ('table', 'REINFORCE with a table of action probabilities.') in summaries()\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_package_that_cannot_be_imported_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    declare(tmp_path, "broken", "no_such_package:ALGORITHM")
    monkeypatch.syspath_prepend(tmp_path)
    assert "broken" in algorithm_names()
    assert algorithm("ppo").name == "ppo"
    with pytest.raises(ConfigError, match="no_such_package:ALGORITHM cannot be imported"):
        algorithm("broken")
    [(_, line)] = [one for one in summaries() if one[0] == "broken"]
    assert "cannot be imported" in line
    assert main(["train", "broken"]) == 2
    assert capsys.readouterr().err.startswith("error: algorithm 'broken': ")


def test_what_is_no_algorithm_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(tmp_path, "other", "forethought.algorithms.ppo:ALGORITHM")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match="not an Algorithm of this name"):
        algorithm("other")
