"""Strangers' text: whatever a terminal obeys is shown instead."""

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forethought.cli import main as entry
from forethought.cli.main import explain, main
from forethought.errors import PolicyError, visible

ESCAPES = "\x1b]0;owned\x07\x9b31m\u202e"
SHOWN = "\\x1b]0;owned\\x07\\x9b31m\\u202e"

ENVIRONMENT = """
from forethought.environments.bandit import Bandit

class Loud(Bandit):
    def observation(self):
        from dataclasses import replace
        return replace(super().observation(), text="see \\x1b[31m")

class Angry(Bandit):
    def step(self, action):
        raise ValueError("\\x1b]0;owned\\x07")
"""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (ESCAPES, SHOWN),
        ("a\tb\nc\r\nd\re", "a\tb\nc\nd\\x0de"),
        ("\ud83d \udc00 \U0001f469", "\\ud83d \\udc00 \U0001f469"),
        ("ä é ☃ \u200d −", "ä é ☃ \u200d −"),
    ],
)
def test_by_hand(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_what_is_shown_can_be_written_and_shown_again(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)
    assert visible(shown) == shown


def test_an_error_is_shown() -> None:
    failure = explain(PolicyError(f"got {ESCAPES}"))
    assert failure is not None
    assert failure.line == f"error: got {SHOWN}"


def test_a_traceback_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["forethought", "--version"])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main() == 0
    assert sys.excepthook is entry._show_bug  # pyright: ignore[reportPrivateUsage]
    try:
        raise ValueError(ESCAPES)
    except ValueError as error:
        capsys.readouterr()
        sys.excepthook(ValueError, error, error.__traceback__)
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert said.endswith(f"ValueError: {SHOWN}\n")


@pytest.fixture
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loud_world.py").write_text(ENVIRONMENT, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("environments")
def test_what_an_environment_says_is_shown_to_the_player(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = iter(["q"])
    monkeypatch.setattr("builtins.input", lambda _: next(typed, "q"))
    assert main(["play", "loud_world:Loud"]) == 0
    assert "\nsee \\x1b[31m\n" in capsys.readouterr().out


@pytest.mark.usefixtures("environments")
def test_what_an_environment_raises_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    words = "collect --policy random --environment.id loud_world:Angry --episodes 8 --output out"
    assert main(words.split()) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("error: ")
    assert "\\x1b]0;owned\\x07" in line
