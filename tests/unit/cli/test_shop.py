"""`forethought shop`: what it says, and which episodes it takes."""

from pathlib import Path

import pytest

from forethought.cli.main import main
from tests.typed import words_of


def test_episodes_of_another_environment_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "bandit"
    collected = f"collect --policy expert --environment.id Bandit --episodes 2 --output {data}"
    assert main(words_of(collected)) == 0
    assert main(words_of(f"shop --episodes {data} --port 0")) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"error: {data} has episodes of Bandit, not WebShop's"


def test_wrong_options_are_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words_of("shop --options data=nowhere --port 0")) == 2
    assert (
        "data is 'nowhere' — expected a folder with items_shuffle.json"
        in (capsys.readouterr().err.splitlines()[-1])
    )
    assert main(["shop", "--port", "99999"]) == 2
