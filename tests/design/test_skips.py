"""What is skipped is listed at the end, with a command; a skip without one fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.skips import fault_of, lines_of, needs

ROOT = Path(__file__).parents[2]

SKIPPING = """
import pytest
from tests.skips import needs

@pytest.mark.parametrize("number", range(3))
def test_marked(number):
    pytest.skip(needs("an engine", "apt-get install engine"))

@pytest.mark.skipif(True, reason=needs("Linux", "make test (on Linux)"))
def test_never(): ...

@pytest.mark.xfail(reason="is known")
def test_known(): assert False

def test_here(): ...
"""
BARE = (
    SKIPPING
    + """
def test_bare():
    pytest.skip("no luck")
"""
)
WHOLE_FILE = """
import pytest
pytest.skip("no luck", allow_module_level=True)
"""


def run_tests(folder: Path, source: str, processes: int) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text("from tests.conftest import *\n")
    (folder / "test_it.py").write_text(source)
    outer = {name for name in os.environ if name.startswith("PYTEST_")}
    environment = {name: value for name, value in os.environ.items() if name not in outer}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", str(processes), "-p", "no:cacheprovider"],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("processes", [0, 1], ids=["in one process", "in another"])
def test_the_list_comes_before_the_closing_line(tmp_path: Path, processes: int) -> None:
    outcome = run_tests(tmp_path, SKIPPING, processes)
    assert outcome.returncode == 0, outcome.stdout
    *_, title, linux, engine, closing = outcome.stdout.splitlines()
    assert "skipped: tests, what they need" in title
    assert engine == "    3  needs an engine  apt-get install engine"
    assert linux == "    1  needs Linux      make test (on Linux)"
    assert closing.startswith("1 passed, 4 skipped, 1 xfailed in")


@pytest.mark.parametrize("source", [BARE, WHOLE_FILE], ids=["one test", "a whole file"])
def test_a_skip_without_a_command_fails(tmp_path: Path, source: str) -> None:
    outcome = run_tests(tmp_path, source, 0)
    assert outcome.returncode != 0
    assert "skipped without a command that would enable it: 'Skipped: no luck'" in outcome.stdout


def test_the_form_of_a_reason() -> None:
    assert needs("pandas", "pip install pandas") == "needs pandas — run: pip install pandas"
    assert fault_of(f"Skipped: {needs('pandas', 'pip install pandas')}") is None
    for reason in ("no luck", "needs pandas", "needs pandas — run: ", "pandas — run: pip"):
        assert fault_of(reason) is not None
    assert lines_of([]) == []
