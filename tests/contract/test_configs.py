"""Every file in configs/ is read, its head says how it is used, and what is named is there."""

import re
from pathlib import Path

import pytest

from forethought.algorithms.registry import algorithm_of
from forethought.configs.file import load_any_config
from forethought.errors import MissingDependencyError
from forethought.rollouts.task import open_task
from tests.skips import needs

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "configs/studies"
CONFIGS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "configs").rglob("*.yaml")
    if STUDIES not in path.parents
)
SPEAKS = [
    *(ROOT / "src").rglob("*.py"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "configs").rglob("*.yaml"),
    *(ROOT / "examples").rglob("*.py"),
    *ROOT.glob("*.md"),
]


@pytest.mark.parametrize("path", CONFIGS)
def test_a_config(path: str) -> None:
    config = load_any_config(ROOT / path)
    algorithm = algorithm_of(config).name
    command = f"#   forethought train {algorithm} --config {path}\n"
    assert command in (ROOT / path).read_text(encoding="utf-8")
    try:
        open_task(config.environment, config.prompt, default_image_size=64)
    except MissingDependencyError as missing:
        what, _, install = str(missing).partition(", not installed — run: ")
        pytest.skip(needs(what.partition(" needs ")[2], install))


def test_no_file_names_a_config_that_is_not_there() -> None:
    named = {
        (name, file.relative_to(ROOT).as_posix())
        for file in SPEAKS
        for name in re.findall(r"(?:\w+/)*configs/\w[\w/]*\.yaml", file.read_text(encoding="utf-8"))
    }
    assert len(named) > 20
    assert not sorted(pair for pair in named if not (ROOT / pair[0]).exists())
