"""ALFWorld's prompts: nothing is lost by grouping, and the memory is a function of the past."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forethought.environments.alfworld.prompt import (
    ALFWorldPrompter,
    alfworld_summary,
    group_commands,
    join_names,
    split_names,
    ungroup,
)
from forethought.environments.contract import Past
from forethought.types import Observation

INTRODUCTION = (
    "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly "
    "around you, you see a drawer 2, a drawer 1, a microwave 1, and a shelf 1.\n\n"
    "Your task is to: put a hot mug in shelf."
)
ALWAYS = ("help", "inventory", "look")
THINGS = st.builds("{} {}".format, st.sampled_from(["mug", "pen", "desklamp"]), st.integers(1, 30))
PLACES = st.builds("{} {}".format, st.sampled_from(["desk", "drawer", "shelf"]), st.integers(1, 30))
COMMANDS = st.one_of(
    st.sampled_from(ALWAYS),
    st.builds("go to {}".format, PLACES),
    st.builds("take {} from {}".format, THINGS, PLACES),
    st.builds("move {} to {}".format, THINGS, PLACES),
    st.builds("put {} in/on {}".format, THINGS, PLACES),
    st.builds("{} {}".format, st.sampled_from(["open", "close"]), PLACES),
    st.builds("examine {}".format, st.one_of(THINGS, PLACES)),
    st.builds("use {}".format, THINGS),
    st.builds("{} {} with {}".format, st.sampled_from(["heat", "clean"]), THINGS, PLACES),
)


@given(st.sets(COMMANDS, max_size=60), st.sets(PLACES), st.booleans())
def test_nothing_is_lost_by_grouping(commands: set[str], new: set[str], is_split: bool) -> None:
    lines = group_commands(sorted(commands), new if is_split else None)
    assert ungroup(lines) == commands


@given(st.lists(st.one_of(THINGS, PLACES), unique=True))
def test_names_are_joined_and_split_again(names: list[str]) -> None:
    assert sorted(split_names(join_names(names))) == sorted(names)


def test_grouped_commands() -> None:
    commands = [
        *(
            "examine desk 1",
            "examine drawer 1",
            "examine mug 1",
            "examine pen 2",
            "go to cabinet 1",
            "go to cabinet 10",
        ),
        *("go to cabinet 2", "go to shelf 1", "take mug 1 from desk 1", "take pen 2 from desk 1"),
        *ALWAYS,
    ]
    new = {"cabinet 1", "cabinet 10", "drawer 1", "shelf 1"}
    assert group_commands(commands, new) == [
        "take from desk 1: mug 1, pen 2",
        "examine: what can be taken, desk 1",
        "also: help, inventory, look",
        "go visited: cabinet 2",
        "examine new: drawer 1",
        "go new: cabinet 1 10, shelf 1",
    ]
    assert group_commands(["examine drawer 1"], new) == ["examine new: drawer 1"]
    assert group_commands(commands)[1] == "examine: what can be taken, desk 1, drawer 1"


def seen(text: str | None, *commands: str) -> Observation:
    return Observation(text, None, (*commands, *ALWAYS), "key", "put a hot mug in shelf", "Heat")


PAST = (
    Past(seen(INTRODUCTION, "go to drawer 1"), "go to drawer 1", True),
    Past(seen("You arrive at drawer 1. The drawer 1 is closed."), "open drawer 1", True),
    Past(
        seen("You open the drawer 1. The drawer 1 is open. In it, you see a mug 2, and a mug 1."),
        "take mug 1 from drawer 1",
        True,
    ),
    Past(seen("You pick up the mug 1 from the drawer 1."), "heat mug 1 with microwave 1", True),
)


def test_memory() -> None:
    """By hand: mug 1 in hand and hot, mug 2 left behind; drawer 1 was looked into."""
    now = seen(
        "You heat the mug 1 using the microwave 1.",
        *("go to drawer 1", "go to drawer 2", "go to shelf 1", "examine mug 1", "open microwave 1"),
    )
    assert alfworld_summary(PAST, now).text == (
        "hold: mug 1, hot\n"
        "seen: mug 2 in drawer 1\n"
        "obs: You heat the mug 1 using the microwave 1\n"
        "examine: mug 1\n"
        "open: microwave 1\n"
        "also: help, inventory, look\n"
        "go visited: drawer 1\n"
        "go new: drawer 2, shelf 1"
    )


def test_what_lies_where_the_goal_wants_it_is_placed() -> None:
    """Mug 1 was moved to the shelf; mug 2 lies in the drawer still."""
    moved = "move mug 1 to shelf 1"
    past = (*PAST, Past(seen("You heat the mug 1 using the microwave 1."), moved, True))
    told = alfworld_summary(past, seen("You move the mug 1 to the shelf 1.")).text
    assert told is not None
    assert told.splitlines()[:3] == [
        "hold: nothing",
        "seen: mug 2 in drawer 1",
        "placed: hot mug 1 in shelf 1",
    ]


def test_the_memory_of_nothing() -> None:
    text = alfworld_summary((), seen(INTRODUCTION, "go to drawer 1")).text
    assert text == (
        "hold: nothing\nseen: nothing\nobs: the room\nalso: help, inventory, look\ngo new: drawer 1"
    )


def test_the_memory_leaves_the_rest_alone() -> None:
    before = seen(INTRODUCTION, "go to drawer 1")
    after = alfworld_summary((), before)
    assert (after.goal, after.state_key, after.admissible_actions) == (
        before.goal,
        before.state_key,
        before.admissible_actions,
    )


@pytest.mark.parametrize(
    ("response_format", "form"),
    [("thoughts", "JSON: thoughts, reflections, action"), ("action_only", "JSON: action")],
)
def test_short_wording(response_format: str, form: str) -> None:
    prompter = ALFWorldPrompter(response_format, "short")  # pyright: ignore[reportArgumentType]
    (message,) = prompter.messages(seen("The desk 1 is closed.", "go to shelf 1"))
    assert message.text == (
        "goal: put a hot mug in shelf\nThe desk 1 is closed.\n"
        f"also: help, inventory, look\ngo: shelf 1\n{form}"
    )


def test_the_greeting_and_the_task_are_not_told_twice() -> None:
    (message,) = ALFWorldPrompter("thoughts", "short").messages(
        seen(INTRODUCTION, "go to microwave 1")
    )
    assert message.text == (
        "goal: put a hot mug in shelf\nYou are in the middle of a room.\n"
        "also: help, inventory, look\ngo: microwave 1\nJSON: thoughts, reflections, action"
    )


def test_a_memory_lists_the_commands_once() -> None:
    now = alfworld_summary((), seen(INTRODUCTION, "go to drawer 1"))
    for wording in ("short", "paper"):
        (message,) = ALFWorldPrompter("thoughts", wording).messages(now)
        assert message.text.count("drawer 1") == 1


def test_paper_wording() -> None:
    """InteractiveCOT, Fig. 3: task, text, commands as they are, and the form with its limit."""
    (message,) = ALFWorldPrompter("thoughts", "paper").messages(seen("You see.", "go to shelf 1"))
    for part in (
        "Your task is to put a hot mug in shelf.",
        "['You see.']",
        "['go to shelf 1', 'help', 'inventory', 'look']",
        '"thoughts": ',
        '"reflections": ',
        '"action": "{an admissible action}"',
        "60 words",
    ):
        assert part in message.text


@pytest.mark.parametrize("wording", ["short", "paper"])
def test_without_a_text_things_are_not_named(wording: str) -> None:
    commands = ("take mug 1 from desk 1", "examine mug 1", "examine desk 1", "go to shelf 1")
    prompter = ALFWorldPrompter("thoughts", wording)  # pyright: ignore[reportArgumentType]
    (message,) = prompter.messages(seen(None, *commands))
    assert "mug 1" not in message.text
    assert "desk 1" in message.text
