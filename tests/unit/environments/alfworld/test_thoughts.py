"""What thoughts claim in ALFWorld, beside what the agent was told."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forethought.environments.alfworld.alfworld import ALFWorld
from forethought.environments.alfworld.notes import Notes
from forethought.environments.alfworld.package import Goal, TaskType
from forethought.environments.alfworld.thoughts import alfworld_facts
from forethought.prompts.responses import write_response
from forethought.types import ThoughtFacts

ROOM = ("cabinet 1", "countertop 1", "drawer 1", "microwave 1", "shelf 1")
GO = tuple(f"go to {place}" for place in ROOM)
HEAT = Goal(TaskType.HEAT, "Mug", "Shelf", "")
LOOK = Goal(TaskType.LOOK, "Mug", "", "DeskLamp")


def facts(
    thoughts: str,
    notes: Notes,
    *,
    reflections: str = "",
    goal: Goal = HEAT,
    commands: tuple[str, ...] = GO,
) -> ThoughtFacts:
    response = f'{{"thoughts": "{thoughts}", "reflections": "{reflections}", "action": "look"}}'
    return alfworld_facts(response, goal=goal, notes=notes, commands=commands)


def truths(found: ThoughtFacts) -> dict[str, bool]:
    return {claim.name: claim.is_true for claim in (*found.perceived, *found.inferred)}


@pytest.mark.parametrize("expert", ["direct", "scan"])
def test_the_expert_is_right_and_does_what_it_concludes(games: Path, expert: str) -> None:
    """In a game of each kind, at every step."""
    environment = ALFWorld(games=str(games), split="train", expert=expert)  # type: ignore[arg-type]
    perceived = 0
    for seed in range(len(TaskType)):
        environment.reset(seed)
        ended = False
        while not ended:
            expert_action = environment.expert()
            response = write_response(expert_action, "thoughts")
            found = environment.thought_facts(response)
            assert all(truths(found).values()), (response, found)
            assert expert_action.action in found.concluded_actions, (response, found)
            perceived += len(found.perceived)
            ended = environment.step(expert_action.action).terminated
        assert environment.success()
    assert perceived > 60
    environment.close()


def test_places_are_those_that_were_seen() -> None:
    notes = Notes(receptacles=ROOM, contents={"shelf 1": ("mug 1",)})
    for place in ("shelf 1", "cabinet 1"):
        found = facts(f"mug 1 is in {place}, I take it", notes)
        assert truths(found) == {"place of mug 1": place == "shelf 1"}
        assert found.concluded_actions == (f"take mug 1 from {place}",)
    guessed = facts("mug 2 is in cabinet 1, I get there", notes)
    assert [claim.true for claim in guessed.perceived] == ["not seen"]
    assert guessed.concluded_actions == ("go to cabinet 1", "open cabinet 1", "examine cabinet 1")


def test_what_was_searched() -> None:
    notes = Notes(receptacles=ROOM, here="shelf 1", contents={"shelf 1": ("spoon 1",)})
    for place in ("cabinet 1", "shelf 1", "sofa 1"):
        found = facts(f"no mug here, left are drawer 1, I look in {place}", notes)
        assert truths(found) == {
            "mug here": True,
            "drawer 1 searched": True,
            f"{place} searched": place == "cabinet 1",
        }
        assert f"go to {place}" in found.concluded_actions


def test_a_thing_that_is_at_hand_is_not_absent() -> None:
    contents = {"countertop 1": ("mug 1",), "shelf 1": ("mug 2",)}
    said = "no mug here, I look in cabinet 1"
    here = facts(said, Notes(receptacles=ROOM, here="countertop 1", contents=contents))
    assert not truths(here)["mug here"]
    there = facts(said, Notes(receptacles=ROOM, here="drawer 1", contents=contents))
    assert truths(there)["mug here"]
    in_place = facts(said, Notes(receptacles=ROOM, here="shelf 1", contents=contents))
    assert truths(in_place)["mug here"]  # where it is to be brought it is not looked for


@pytest.mark.parametrize(
    ("thoughts", "concluded"),
    [
        ("mug 1 goes in shelf 1", "move mug 1 to shelf 1"),
        ("I bring mug 1 to shelf 1", "go to shelf 1"),
        ("microwave 1 makes mug 1 hot", "heat mug 1 with microwave 1"),
        ("mug 1 must be hot, microwave 1 does it", "go to microwave 1"),
        ("mug 1 is of no use, it may go in drawer 1", "open drawer 1"),
        ("mug 1 is of no use, I leave it at drawer 1", "go to drawer 1"),
    ],
)
def test_what_is_held(thoughts: str, concluded: str) -> None:
    for held in ("mug 1", "mug 2", None):
        found = facts(thoughts, Notes(receptacles=ROOM, held=held))
        assert truths(found)["held"] == (held == "mug 1")
        assert concluded in found.concluded_actions


def test_a_useless_thing_goes_anywhere() -> None:
    commands = ("move mug 1 to shelf 1", "move mug 1 to drawer 1", "look")
    found = facts("mug 1 is of no use", Notes(held="mug 1"), commands=commands)
    assert found.concluded_actions == commands[:2]
    assert facts("I looked everywhere for mug", Notes(), commands=commands).concluded_actions == (
        "look",
    )


def test_another_state_or_tool_than_the_task_asks_for() -> None:
    notes = Notes(receptacles=ROOM, held="mug 1")
    right = facts("mug 1 must be hot, microwave 1 does it", notes)
    assert [claim.is_true for claim in right.inferred] == [True, True]
    wrong = facts("mug 1 must be cool, cabinet 1 does it", notes)
    assert [claim.is_true for claim in wrong.inferred] == [False, False]


def test_a_lamp_that_is_here() -> None:
    for lamps in ((), ("use desklamp 1",)):
        found = facts("the desklamp is here, I use it", Notes(), goal=LOOK, commands=lamps)
        assert truths(found) == {"desklamp here": bool(lamps)}
        assert found.concluded_actions == lamps


def test_reflections_are_compared_where_they_are_in_the_experts_words() -> None:
    held = Notes(held="mug 1")
    assert truths(facts("", held, reflections="the mug is not hot yet")) == {"progress": True}
    assert truths(facts("", held, reflections="no mug found so far")) == {"progress": False}
    assert truths(facts("", held, reflections="Let us see.")) == {}


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_has_facts(text: str) -> None:
    alfworld_facts(text, goal=HEAT, notes=Notes(), commands=())
    facts(text, Notes())
    facts("no mug here, I look in " + text, Notes(), reflections="the mug is " + text)
