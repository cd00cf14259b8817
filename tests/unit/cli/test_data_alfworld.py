"""`data alfworld`: what is made, what is kept, and sets that are not mixed."""

import json
from pathlib import Path

import pytest

from forethought.durable import CACHE_VARIABLE
from tests.unit.cli.terminal import Type

MAKE = "data alfworld --games 2 --validation-games 1 --workers 0 --output games"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))


def test_games_are_made_kept_and_not_mixed(type_: Type, tmp_path: Path) -> None:
    first = type_(f"{MAKE} --json")
    assert first.code == 0
    told = json.loads(first.out)
    assert sum(made["games"] for made in told["made"] if made["split"] == "train") == 2
    names = sorted(path.parent.name for path in tmp_path.glob("games/*/*/*/*/game.tw-pddl"))
    assert [name.split("_00")[0] for name in names] == [
        "trial_G0_train",
        "trial_G0_train",
        "trial_G0_valid_seen",
        "trial_G0_valid_unseen",
    ]
    again = type_(f"{MAKE} --json")
    assert json.loads(again.out) == {
        "output": "games",
        "made": [],
        "kept": {"train": 2, "valid_seen": 1, "valid_unseen": 1},
    }
    other = type_(f"{MAKE} --seed 1")
    assert other.code == 2
    assert "which is not of seed 1 — name another --output" in other.err
