"""Failures and successes alike, spread over all that were played."""

import pytest

from forethought.reports.selection import select_episodes
from tests.unit.reports.builders import crashed, lost, never_begun, unfinished, won


def shown(kinds: str, most: int = 4) -> list[int]:
    """Numbers of the selected among episodes of these kinds, one letter each."""
    make = {"s": won, "f": lost, "u": unfinished, "c": crashed, "n": never_begun}
    return [s.number for s in select_episodes([make[kind]() for kind in kinds], most).episodes]


@pytest.mark.parametrize(
    ("kinds", "numbers"),
    [
        pytest.param("sfsf", [1, 2, 3, 4], id="all, where there is room"),
        pytest.param("ssssffff", [1, 3, 5, 7], id="half of each, evenly spread"),
        pytest.param("ssssssf", [1, 3, 5, 7], id="successes fill up for failures"),
        pytest.param("fffffsf", [1, 3, 5, 6], id="failures fill up for successes"),
        pytest.param("ssssssss", [1, 3, 5, 7], id="one kind alone"),
        pytest.param("cnsuf", [3, 5], id="lost and unfinished ones are left out"),
        pytest.param("uucu", [1, 2, 4], id="unfinished ones, where none is finished"),
        pytest.param("uuuuuuuu", [1, 3, 5, 7], id="and these spread as well"),
        pytest.param("cn", [], id="nothing to show"),
        pytest.param("", [], id="nothing played"),
    ],
)
def test_selected(kinds: str, numbers: list[int]) -> None:
    assert shown(kinds) == numbers


def test_an_odd_number_gives_failures_the_place_left_over() -> None:
    selection = select_episodes([won(), won(), won(), lost(), lost(), lost()], most=3)
    assert [s.trajectory.success for s in selection.episodes] == [True, False, False]


def test_everything_is_counted_whether_shown_or_not() -> None:
    played = [won(), lost(), lost(), unfinished(), crashed(), never_begun()]
    selection = select_episodes(played, most=1)
    assert len(selection.episodes) == 1
    assert (selection.successes, selection.failures) == (1, 2)
    assert (selection.unfinished, selection.lost) == (1, 2)
