"""The version of the code: what results depend on, and nothing else."""

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from forethought.studies.plan import PACKAGE, SOURCES, code_version, sources


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return shutil.copytree(PACKAGE, tmp_path / "forethought")


def test_a_copy_is_the_same(package: Path) -> None:
    assert code_version(package) == code_version()


def test_all_sources_are_there() -> None:
    assert [name for name in SOURCES if not any(PACKAGE.glob(name))] == []


STORING = {
    "durable.py",
    *("runs/metrics.py", "runs/pairs.py", "runs/run_folder.py"),
}
"""What puts numbers on the disk and reads them back equal, or fails."""


def test_nothing_that_counts_is_made_by_what_does_not() -> None:
    counted = {path.relative_to(PACKAGE).as_posix() for path in sources()}
    used = {name for path in sources() for name in imported_by(path)}
    assert used - counted - STORING == {"errors.py"}


def imported_by(path: Path) -> Iterator[str]:
    """The package's own files that a source names, below the package."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                file = name.removeprefix("forethought.").replace(".", "/") + ".py"
                if name.startswith("forethought.") and (PACKAGE / file).is_file():
                    yield file


class Rewording(NamedTuple):
    """A file in which some words stand for others."""

    file: str
    old: str
    new: str


def reword(package: Path, change: Rewording) -> None:
    path = package / change.file
    text = path.read_text(encoding="utf-8")
    assert change.old in text
    path.write_text(text.replace(change.old, change.new), encoding="utf-8")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(Rewording("losses/ppo.py", "1 - clip", "1 + clip"), id="loss"),
        pytest.param(
            Rewording("algorithms/ppo/config.py", "gamma: float = 0.9", "gamma: float = 0.8"),
            id="default",
        ),
        pytest.param(
            Rewording("algorithms/q_sft/config.py", "gamma: float = 1.0", "gamma: float = 0.9"),
            id="default of another algorithm",
        ),
        pytest.param(
            Rewording("runs/checkpoints.py", "checkpoints[-1]", "checkpoints[0]"),
            id="from which checkpoint a stage starts",
        ),
        pytest.param(
            Rewording("prompts/prompters.py", "Answer as", "Reply as"), id="a prompt's wording"
        ),
    ],
)
def test_a_source_that_determines_results_counts(package: Path, change: Rewording) -> None:
    reword(package, change)
    assert code_version(package) != code_version()


def test_a_file_that_is_new_gone_or_renamed_counts(package: Path) -> None:
    versions = [code_version(package)]
    (package / "targets/new.py").write_text("x = 1", encoding="utf-8")
    versions.append(code_version(package))
    (package / "losses/ppo.py").rename(package / "losses/other.py")
    versions.append(code_version(package))
    (package / "losses/other.py").unlink()
    versions.append(code_version(package))
    (package / "configs/new.py").write_text("x = 1", encoding="utf-8")
    versions.append(code_version(package))
    assert len(set(versions)) == 5


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            Rewording("algorithms/ppo/config.py", "Discount per environment step.", "Discount."),
            id="a field's words",
        ),
        pytest.param(
            Rewording("losses/ppo.py", "import torch\n", "import torch  # why\n"),
            id="a comment",
        ),
        pytest.param(
            Rewording("losses/ppo.py", "PPO's losses", "The losses of PPO"),
            id="a module's docstring",
        ),
    ],
)
def test_what_only_shows_or_explains_does_not(package: Path, change: Rewording) -> None:
    reword(package, change)
    assert code_version(package) == code_version()


def test_another_command_and_a_report_that_is_gone_do_not(package: Path) -> None:
    (package / "cli/main.py").write_text("x = 1", encoding="utf-8")
    (package / "reports/markup.py").unlink()
    assert code_version(package) == code_version()
