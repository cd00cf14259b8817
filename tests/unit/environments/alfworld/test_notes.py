"""What is read off each kind of reply."""

import pytest

from forethought.environments.alfworld.notes import Exchange, Notes

INTRODUCTION = (
    "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly "
    "around you, you see a cabinet 1, a drawer 2, a drawer 1, and a microwave 1.\n\n"
    "Your task is to: put a hot mug in cabinet."
)
EMPTY_CABINET = ("open cabinet 1", "You open the cabinet 1. The cabinet 1 is open. In it, you see")


def after(*exchanges: tuple[str, str]) -> Notes:
    return Notes.of([Exchange(None, INTRODUCTION), *(Exchange(*each) for each in exchanges)])


def test_introduction() -> None:
    notes = after()
    assert notes.goal == "put a hot mug in cabinet"
    assert notes.receptacles == ("cabinet 1", "drawer 2", "drawer 1", "microwave 1")
    assert notes.contents == {}
    assert notes.here is None


def test_a_closed_receptacle_is_not_explored() -> None:
    notes = after(("go to cabinet 1", "You arrive at cabinet 1. The cabinet 1 is closed."))
    assert notes.here == "cabinet 1"
    assert notes.closed == {"cabinet 1"}
    assert not notes.is_explored("cabinet 1")


def test_an_open_one_shows_what_it_holds() -> None:
    notes = after((EMPTY_CABINET[0], EMPTY_CABINET[1] + " a mug 2, and a plate 1."))
    assert notes.contents == {"cabinet 1": ("mug 2", "plate 1")}
    assert notes.places_of("mug") == (("mug 2", "cabinet 1"),)
    assert notes.closed == set()


def test_nothing_is_seen_in_an_empty_one() -> None:
    notes = after((EMPTY_CABINET[0], EMPTY_CABINET[1] + " nothing."))
    assert notes.contents == {"cabinet 1": ()}


def test_what_is_taken_and_moved_changes_place() -> None:
    notes = after(
        (EMPTY_CABINET[0], EMPTY_CABINET[1] + " a mug 2."),
        ("take mug 2 from cabinet 1", "You pick up the mug 2 from the cabinet 1."),
    )
    assert notes.held == "mug 2"
    assert notes.contents == {"cabinet 1": ()}
    notes = notes.after(Exchange("move mug 2 to drawer 1", "You move the mug 2 to the drawer 1."))
    assert notes.held is None
    assert notes.contents == {"cabinet 1": (), "drawer 1": ("mug 2",)}


@pytest.mark.parametrize(
    ("replies", "states"),
    [
        (["heat"], {"hot"}),
        (["heat", "cool"], {"cool"}),
        (["cool", "heat"], {"hot"}),
        (["clean", "heat"], {"clean", "hot"}),
    ],
)
def test_heating_undoes_cooling_and_not_cleaning(replies: list[str], states: set[str]) -> None:
    notes = after(*((v, f"You {v} the mug 2 using the microwave 1.") for v in replies))
    assert notes.states == {"mug 2": states}


def test_what_had_no_effect_is_remembered_until_the_next_reply() -> None:
    notes = after(("dance", "Nothing happens."))
    assert notes.failed == "dance"
    assert notes.after(Exchange("look", "You are facing the desk 1.")).failed is None


def test_an_empty_command_is_not_the_introduction() -> None:
    assert after(("", "Nothing happens.")).goal == "put a hot mug in cabinet"


def test_the_older_wording_of_official_games_is_read_too() -> None:
    notes = after(("put mug 2 in/on drawer 1", "You put the mug 2 in/on the drawer 1."))
    assert notes.contents == {"drawer 1": ("mug 2",)}
