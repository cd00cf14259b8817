"""The version of the code: what results depend on, and nothing else."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from forethought.studies.code_version import PACKAGE, SOURCES, code_version


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return shutil.copytree(PACKAGE, tmp_path / "forethought")


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_copy_is_the_same(package: Path) -> None:
    assert code_version(package) == code_version()


def test_all_sources_are_there() -> None:
    assert [name for name in SOURCES if not (PACKAGE / name).exists()] == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda p: replaced(p / "losses/policy.py", "1 - clip", "1 + clip"), id="loss"),
        pytest.param(
            lambda p: replaced(p / "config.py", "gamma: float = 0.9", "gamma: float = 0.8"),
            id="default",
        ),
        pytest.param(lambda p: (p / "targets/new.py").write_text("x = 1"), id="new file"),
        pytest.param(lambda p: (p / "losses/entropy.py").unlink(), id="file gone"),
        pytest.param(
            lambda p: (p / "losses/entropy.py").rename(p / "losses/other.py"), id="file renamed"
        ),
        pytest.param(
            lambda p: replaced(p / "prompts/plain.py", "Answer as", "Reply as"),
            id="a prompt's wording",
        ),
    ],
)
def test_a_source_that_determines_results_counts(
    package: Path, change: Callable[[Path], object]
) -> None:
    change(package)
    assert code_version(package) != code_version()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda p: (p / "cli/main.py").write_text("x = 1"), id="a command"),
        pytest.param(lambda p: (p / "reports/svg.py").unlink(), id="a report"),
        pytest.param(
            lambda p: replaced(p / "config.py", "Discount per environment step.", "Discount."),
            id="a field's words",
        ),
        pytest.param(
            lambda p: replaced(p / "losses/policy.py", "import torch\n", "import torch  # why\n"),
            id="a comment",
        ),
        pytest.param(
            lambda p: replaced(p / "losses/entropy.py", "every next", "each next"),
            id="a module's docstring",
        ),
    ],
)
def test_what_only_shows_or_explains_does_not(
    package: Path, change: Callable[[Path], object]
) -> None:
    change(package)
    assert code_version(package) == code_version()
