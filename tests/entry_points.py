"""Packages outside, as an installer leaves them."""

import shutil
import tomllib
from pathlib import Path

import pytest

from forethought.algorithms.registry import ENTRY_POINTS

EXAMPLES = Path(__file__).parents[1] / "examples"


def declare(folder: Path, name: str, value: str) -> None:
    """Writes what an installer writes of a package that declares one algorithm."""
    metadata = folder / f"{name}-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{name} = {value}\n")


def declare_on_path(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Declares an algorithm in a folder of its own below this one, which Python then looks into."""
    site = folder / "site-packages"
    site.mkdir()
    declare(site, name, value)
    monkeypatch.syspath_prepend(site)


def install(example: str, folder: Path) -> None:
    """Copies an example package into the folder, and declares its algorithm there."""
    source = EXAMPLES / example
    project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [(name, value)] = project["entry-points"][ENTRY_POINTS].items()
    package = value.partition(":")[0].partition(".")[0]
    shutil.copytree(source / package, folder / package)
    declare(folder, name, value)
