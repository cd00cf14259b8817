"""Episodes that anyone may play: one player each, whoever comes, dies or is late."""

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from forethought.rollouts.board import Board, Round
from forethought.rollouts.scripted import expert_response, play
from forethought.types import Trajectory
from tests.engines import bandit


@pytest.fixture
def board(tmp_path: Path) -> Board:
    board = Board(tmp_path / "work")
    board.clear()
    board.wish(Round(0, range(4)))
    board.wish(Round(1, range(4, 8)))
    return board


@pytest.fixture(scope="module")
def trajectory() -> Trajectory:
    task = bandit()
    (found,) = play(task.id, task.factory, task.prompter, expert_response("thoughts"), iter([1]))
    return found


def age(board: Board, episode: int, tmp_path: Path) -> None:
    """Makes a claim an hour old."""
    claim = tmp_path / "work" / "claims" / f"episode_{episode}"
    then = claim.stat().st_mtime - 3600
    os.utime(claim, (then, then))


def test_the_earliest_round_is_played_first_and_no_episode_twice(board: Board) -> None:
    assert board.claim("a", 3) == [0, 1, 2]
    assert board.claim("b", 3) == [3, 4, 5]
    assert board.claim("a", 9) == [6, 7]
    assert board.claim("b", 9) == []


def test_many_players_at_once_share_the_episodes(board: Board) -> None:
    board.wish(Round(2, range(8, 200)))
    taken: list[list[int]] = [[] for _ in range(8)]

    def grab(number: int) -> None:
        while episodes := board.claim(f"p{number}", 3):
            taken[number] += episodes

    threads = [threading.Thread(target=grab, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(episode for episodes in taken for episode in episodes) == list(range(200))


def test_what_was_handed_in_comes_back(board: Board, trajectory: Trajectory) -> None:
    (episode,) = board.claim("a", 1)
    assert board.played(episode) is None
    assert board.hand_in("a", episode, trajectory)
    found = board.played(episode)
    assert found is not None
    assert found.steps[0].completion.text == trajectory.steps[0].completion.text
    assert not board.hand_in("a", episode, replace(trajectory, success=False))
    assert board.claim("b", 1) == [1]


def test_a_silent_player_loses_its_episodes_and_what_it_plays(
    board: Board, trajectory: Trajectory, tmp_path: Path
) -> None:
    assert board.claim("a", 2) == [0, 1]
    age(board, 0, tmp_path)
    assert board.free_claims(60.0) == [0]
    assert board.claim("b", 1) == [0]
    assert not board.hand_in("a", 0, trajectory)  # It was only slow: too late.
    assert board.hand_in("b", 0, trajectory)
    assert board.hand_in("a", 1, trajectory)
    age(board, 1, tmp_path)
    assert board.free_claims(60.0) == []  # What is handed in is handed in.


def test_a_living_player_keeps_its_claims(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forethought.rollouts.board.RENEWAL_S", 0.01)
    assert board.claim("a", 1) == [0]
    age(board, 0, tmp_path)
    with board.renewing("a", [0]):
        threading.Event().wait(0.2)
    assert board.free_claims(60.0) == []


def test_episodes_that_are_forgotten_are_open_again(board: Board, trajectory: Trajectory) -> None:
    board.claim("a", 1)
    board.hand_in("a", 0, trajectory)
    board.forget([0])
    assert board.played(0) is None
    assert board.claim("b", 1) == [0]


def test_a_round_that_was_learned_from_is_gone(board: Board) -> None:
    board.finish(Round(0, range(4)))
    assert board.claim("a", 9) == [4, 5, 6, 7]


def test_a_trainer_that_begins_again_takes_no_late_episodes(
    board: Board, trajectory: Trajectory
) -> None:
    board.claim("a", 1)
    board.clear()
    assert not board.hand_in("a", 0, trajectory)
    assert board.claim("a", 1) == []
    assert board.is_open
    board.close()
    assert board.is_over
