"""ALFWorld's benchmark plays the same on both engines; how fast is not tested."""

from pathlib import Path

import pytest

from benchmarks.speed.alfworld import measure_alfworld, measure_expert

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORETHOUGHT_CACHE", str(tmp_path))


def test_engines() -> None:
    names = [result.name for result in measure_alfworld(games=2, steps=3)]
    assert names == ["alfworld/start", "alfworld/restart", "alfworld/step"]


def test_expert() -> None:
    found = {result.name: result.value for result in measure_expert(games=6)}
    assert found["alfworld/solved"] == 1
    assert found["alfworld/Look/commands"] > 0
