"""Failures and successes alike, spread over all that were played."""

import pytest

from forethought.reports.replay import MOST_EPISODES, select_episodes
from tests.unit.reports.builders import crashed, episode, lost, never_begun, step, unfinished, won


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


@pytest.mark.parametrize(
    ("lengths", "number", "rule"),
    [
        pytest.param([2, 9, -3, -8], 3, "opens on the first failure", id="first failure"),
        pytest.param(
            [2, 9, 4], 2, "No episode failed: the replay opens on the longest", id="longest"
        ),
        pytest.param(24 * [2] + [7], 25, "opens on the longest success", id="longest, at the end"),
        pytest.param(24 * [2] + [-7], 25, "opens on the first failure", id="late failure"),
    ],
)
def test_the_replay_opens_on_an_episode_worth_reading(
    lengths: list[int], number: int, rule: str
) -> None:
    """Episodes of so many steps; failures have a minus sign."""
    played = [episode(*((abs(n) - 1) * [step()]), step(last=True), success=n > 0) for n in lengths]
    selection = select_episodes(played)
    assert selection.episodes[selection.opening].number == number
    assert rule in selection.opening_rule
    assert len(selection.episodes) == min(len(lengths), MOST_EPISODES)


def test_where_no_episode_is_finished_there_is_no_rule() -> None:
    selection = select_episodes([crashed(), unfinished(), unfinished()])
    assert (selection.opening, selection.opening_rule) == (0, "")


def test_an_odd_number_gives_failures_the_place_left_over() -> None:
    selection = select_episodes([won(), won(), won(), lost(), lost(), lost()], most=3)
    assert [s.trajectory.success for s in selection.episodes] == [True, False, False]


def test_everything_is_counted_whether_shown_or_not() -> None:
    played = [won(), lost(), lost(), unfinished(), crashed(), never_begun()]
    selection = select_episodes(played, most=1)
    assert len(selection.episodes) == 1
    assert (selection.successes, selection.failures) == (1, 2)
    assert (selection.unfinished, selection.lost) == (1, 2)
