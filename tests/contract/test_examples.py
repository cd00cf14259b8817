"""What lies in `examples/` runs as a reader would run it, and does what it says."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FORETHOUGHT = Path(sysconfig.get_path("scripts")) / "forethought"
ENVIRONMENT = "examples.custom_environment:Thermostat"


def run(*words: str | Path, typed: str = "") -> str:
    """What a command prints, typed in the checkout."""
    result = subprocess.run(
        words,
        cwd=ROOT,
        input=typed,
        env=os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(example: Path) -> None:
    assert run(sys.executable, example)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_says_how_it_is_run(example: Path) -> None:
    assert f"\n    python examples/{example.name}\n" in example.read_text(encoding="utf-8")


def test_an_environment_of_ones_own_takes_sixty_lines() -> None:
    source = (ROOT / "examples" / "custom_environment.py").read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 60


def test_an_environment_of_ones_own_is_found_by_the_installed_command() -> None:
    """Unlike `python -m`, an installed script does not look for modules where it is called."""
    out = run(FORETHOUGHT, "play", ENVIRONMENT, typed="stop\n")
    assert re.search(r"It is \d\d degrees", out)
    plan = run(FORETHOUGHT, "train", "sft", "--environment.id", ENVIRONMENT, "--dry-run")
    assert f"id: {ENVIRONMENT}" in plan
