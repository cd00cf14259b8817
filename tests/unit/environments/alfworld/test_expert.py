"""The expert's decisions, from notes alone."""

import json

import pytest

from forethought.environments.alfworld.expert import MAX_WORDS, advise
from forethought.environments.alfworld.notes import Notes
from forethought.environments.alfworld.package import Goal, TaskType

ROOM = ("cabinet 1", "countertop 1", "drawer 1", "drawer 2", "fridge 1", "shelf 1", "shelf 2")
PICK = Goal(TaskType.PICK, "Mug", "Shelf", "")
PICK2 = Goal(TaskType.PICK2, "Mug", "Shelf", "")
COOL = Goal(TaskType.COOL, "Mug", "Shelf", "")
GO = tuple(f"go to {place}" for place in ROOM)


def choose(goal: Goal, notes: Notes, commands: tuple[str, ...]) -> str:
    expert_action = advise(goal, notes, commands)
    words = sum(len(str(json.loads(value)).split()) for _, value in expert_action.fields)
    assert [name for name, _ in expert_action.fields] == ["thoughts", "reflections"]
    assert words + len(expert_action.action.split()) <= MAX_WORDS
    return expert_action.action


def test_surfaces_come_before_containers() -> None:
    assert choose(PICK, Notes(receptacles=ROOM), GO) == "go to countertop 1"


def test_a_search_may_go_through_what_is_left() -> None:
    """A mug lies in no drawer; of what was seen nothing is named, of the shelves the next one."""
    notes = Notes(receptacles=ROOM, contents={"shelf 1": ()})
    thoughts = {
        scans: json.loads(advise(PICK, notes, GO, scans=scans).fields[0][1])
        for scans in (False, True)
    }
    assert thoughts[False] == "no mug here, I look in countertop 1"
    assert thoughts[True] == (
        "no mug here, left are cabinet 1, countertop 1, fridge 1, shelf 2, I look in countertop 1"
    )
    nothing_seen = advise(PICK, Notes(receptacles=ROOM), GO, scans=True).fields[0][1]
    assert "left are cabinet 1, countertop 1, fridge 1, shelf 1, I look" in nothing_seen


def test_what_is_at_hand_is_opened_without_a_list() -> None:
    at_hand = tuple(c for c in GO if c != "go to cabinet 1")
    notes = Notes(receptacles=ROOM, here="cabinet 1")
    expert_action = advise(
        PICK, notes, (*at_hand, "examine cabinet 1", "open cabinet 1"), scans=True
    )
    assert json.loads(expert_action.fields[0][1]) == "no mug here, I look in cabinet 1"


def test_where_it_cannot_lie_comes_last() -> None:
    """A mug lies in no drawer, by the package's table."""
    seen = {place: () for place in ROOM if not place.startswith("drawer")}
    notes = Notes(receptacles=ROOM, contents=seen)
    assert choose(PICK, notes, GO) == "go to drawer 1"


def test_a_container_is_opened_on_arrival() -> None:
    commands = tuple(c for c in GO if c != "go to cabinet 1")
    notes = Notes(receptacles=ROOM, here="cabinet 1")
    assert choose(PICK, notes, (*commands, "examine cabinet 1", "open cabinet 1")) == (
        "open cabinet 1"
    )


def test_a_sibling_is_emptied_from_where_one_stands() -> None:
    """Fridge and cabinet share their point: there is no "go to" between them."""
    here = ("examine cabinet 1", "examine fridge 1", "open fridge 1", "close cabinet 1")
    notes = Notes(
        receptacles=("cabinet 1", "fridge 1"),
        here="cabinet 1",
        contents={"cabinet 1": (), "fridge 1": ("mug 1",)},
        closed=frozenset({"fridge 1"}),
    )
    assert choose(PICK, notes, here) == "open fridge 1"


def test_two_things_go_to_the_same_place() -> None:
    """The second one is put where the first lies, though another shelf comes before it."""
    notes = Notes(receptacles=ROOM, held="mug 2", contents={"shelf 2": ("mug 1",)})
    assert choose(PICK2, notes, GO) == "go to shelf 2"


def test_the_first_of_two_is_not_taken_back() -> None:
    notes = Notes(receptacles=ROOM, contents={"shelf 2": ("mug 1",), "shelf 1": ("mug 2",)})
    commands = ("examine shelf 1", "take mug 2 from shelf 1", "go to shelf 2")
    assert choose(PICK2, notes, commands) in ("take mug 2 from shelf 1", "go to shelf 2")
    both = (*commands[:2], "take mug 1 from shelf 2")
    assert choose(PICK2, notes, both) != "take mug 1 from shelf 2" or "mug 2" in both[1]


@pytest.mark.parametrize(
    ("states", "action"),
    [({}, "go to fridge 1"), ({"mug 1": frozenset({"cool"})}, "go to shelf 1")],
)
def test_what_must_be_cool_is_cooled_first(states: dict[str, frozenset[str]], action: str) -> None:
    assert choose(COOL, Notes(receptacles=ROOM, held="mug 1", states=states), GO) == action


def test_a_mug_in_place_that_is_warm_is_fetched() -> None:
    notes = Notes(receptacles=ROOM, contents={"shelf 1": ("mug 1",)})
    assert choose(COOL, notes, GO) == "go to shelf 1"


def test_a_useless_thing_is_put_down() -> None:
    notes = Notes(receptacles=ROOM, held="plate 1")
    assert choose(PICK, notes, (*GO, "move plate 1 to countertop 1")) == (
        "move plate 1 to countertop 1"
    )


def test_there_is_always_an_answer() -> None:
    notes = Notes(receptacles=ROOM, contents=dict.fromkeys(ROOM, ()))
    assert choose(PICK, notes, ("help", "look")) == "look"
