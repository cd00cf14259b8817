"""Images of the docs are drawn by code in this repository, and never older than it."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from forethought.cli.quickstart import Quickstart, ppo_config, sft_config
from forethought.configs.file import load_config

DOCS = Path(__file__).parents[2] / "docs"
QUICKSTART = (sft_config(Quickstart()), ppo_config(Quickstart()))


@pytest.fixture(scope="module")
def make_images() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_images", DOCS / "make_images.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_image_is_what_the_code_draws(make_images: ModuleType) -> None:
    """Red: `python docs/make_images.py` draws the stored data again."""
    data = json.loads(make_images.DATA.read_text(encoding="utf-8"))
    assert make_images.drawn(data) == make_images.DRAWING.read_bytes()


def test_the_data_are_of_the_quickstart_as_it_is(make_images: ModuleType, tmp_path: Path) -> None:
    """Red: a value has changed since (`make readme-image` plays it again), or a field was renamed
    (`forethought migrate` rewrites the stored settings)."""
    data = json.loads(make_images.DATA.read_text(encoding="utf-8"))
    stored = tmp_path / "config.yaml"
    for text, expected in zip(data["settings"], QUICKSTART, strict=True):
        stored.write_text(text, encoding="utf-8")
        assert load_config(stored, type(expected)) == expected


def test_the_readme_shows_it(make_images: ModuleType) -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert f"docs/images/{make_images.DRAWING.name}" in readme
