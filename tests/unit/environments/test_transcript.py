"""What was done and replied, as text and back."""

import pytest

from forethought.environments.parts import MAX_ACTION, Turn, read_transcript, write_transcript

ODD = ["", " ", 'a "b"', "two\nlines\n> three", "\\", "\ud800", "é ☃ 中", "\r\u2028\0"]


def test_two_lines_a_turn() -> None:
    turns = (Turn("Is it alive?", "Yes."), Turn("Is it a cat?", "No."))
    assert write_transcript(turns) == "> Is it alive?\nYes.\n> Is it a cat?\nNo."


@pytest.mark.parametrize("action", ODD)
def test_any_action_comes_back(action: str) -> None:
    turns = (Turn(action, "Yes."), Turn("b", "No."))
    assert read_transcript(write_transcript(turns)) == turns


def test_no_turns_are_no_text() -> None:
    assert write_transcript(()) == ""
    assert read_transcript("") == ()


def test_endless_actions_are_cut() -> None:
    (turn,) = read_transcript(write_transcript([Turn("x" * 10_000, "No.")]))
    assert turn.action == "x" * (MAX_ACTION - 1) + "…"
    exact = "y" * MAX_ACTION
    assert read_transcript(write_transcript([Turn(exact, "No.")]))[0].action == exact


@pytest.mark.parametrize("text", ["Yes.", "> a", "> a\nYes.\nb\nNo.", "> a\nYes.\n"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected lines of actions"):
        read_transcript(text)
