"""Sokoban's rules, its rooms and its solver."""

import numpy as np
import pytest

from forethought.environments.sokoban.rooms import (
    MOVES,
    Room,
    Start,
    State,
    is_held_out,
    make_room,
    moved,
    solution,
)
from forethought.environments.sokoban.sokoban import (
    BOX,
    EVALUATION_SEEDS,
    FLOOR,
    PLACED,
    PLAYER,
    TARGET,
    WALL,
    Sokoban,
    draw_room,
)
from forethought.errors import ConfigError
from forethought.models.tiny import train_tokenizer

ROOM = """
# # # # # #
# P X _ O #
# _ _ _ _ #
# X _ O _ #
# _ # _ _ #
# # # # # #
"""


def read(text: str) -> Start:
    cells = {
        (row, column): symbol
        for row, line in enumerate(text.split("\n")[1:-1])
        for column, symbol in enumerate(line.split())
    }

    def where(symbols: str) -> frozenset[tuple[int, int]]:
        return frozenset(cell for cell, symbol in cells.items() if symbol in symbols)

    (player,) = where("PS")
    return Start(Room(6, where("#"), where("OSV")), State(player, where("XV")))


@pytest.mark.parametrize(
    ("actions", "player", "boxes"),
    [
        pytest.param("up", (1, 1), {(1, 2), (3, 1)}, id="a wall ahead"),
        pytest.param("right", (1, 2), {(1, 3), (3, 1)}, id="a push"),
        pytest.param("right right right", (1, 3), {(1, 4), (3, 1)}, id="a box against the wall"),
        pytest.param("down down down", (3, 1), {(1, 2), (4, 1)}, id="a box in the corner"),
    ],
)
def test_moves(actions: str, player: tuple[int, int], boxes: set[tuple[int, int]]) -> None:
    room, state = read(ROOM)
    for action in actions.split():
        state = moved(room, state, action)
    assert state == State(player, frozenset(boxes))


def test_two_boxes_in_a_row_do_not_move() -> None:
    room, state = read(ROOM)
    state = State((1, 1), frozenset({(1, 2), (1, 3)}))
    assert moved(room, state, "right") == state


def test_the_solution_is_the_shortest_and_is_one() -> None:
    """One box, by hand: down, right, right are walks; up is the push. So 4 moves."""
    room, state = read(
        """
# # # # # #
# _ _ O _ #
# _ _ X _ #
# P _ _ _ #
# _ _ _ _ #
# # # # # #
"""
    )
    moves = solution(room, state)
    assert moves is not None
    assert len(moves) == 3
    for action in moves:
        state = moved(room, state, action)
    assert room.is_solved(state)
    stuck = State((2, 2), frozenset({(1, 1)}))
    assert solution(room, stuck) is None


def test_rooms_can_be_solved_within_the_limits() -> None:
    randomness = np.random.default_rng(0)
    for _ in range(30):
        room, state = make_room(6, 1, range(4, 16), randomness)
        moves = solution(room, state)
        assert moves is not None
        assert 4 <= len(moves) <= 15
        assert not state.boxes & room.targets
        assert state.player not in room.walls | state.boxes


def test_no_held_out_room_is_dealt_in_training() -> None:
    environment = Sokoban()
    for seed in range(40):
        for first, expected in ((0, False), (EVALUATION_SEEDS, True)):
            environment.reset(first + seed)
            start = Start(environment._room, environment._state)  # pyright: ignore[reportPrivateUsage]
            assert is_held_out(start) is expected


def test_rewards_and_success() -> None:
    """-0.1 a step, +1 for the box that comes home, +10 for the end."""
    environment = Sokoban()
    environment.reset(1)
    total, steps, ended = 0.0, 0, False
    while not ended:
        _, terminated, truncated = transition = environment.step(environment.expert().action)
        total, steps, ended = total + transition.reward, steps + 1, terminated or truncated
    assert environment.success()
    assert total == pytest.approx(11 - 0.1 * steps)
    assert dict(environment.metrics())["progress"] == 1


def test_a_box_that_leaves_its_target_costs_one() -> None:
    environment = Sokoban(boxes=2, limit_steps=30)
    environment.reset(0)
    room, _ = read(ROOM)
    environment._room = room  # pyright: ignore[reportPrivateUsage]
    environment._state = State((3, 4), frozenset({(3, 3), (1, 2)}))  # pyright: ignore[reportPrivateUsage]
    assert environment.step("left").reward == pytest.approx(-1.1)
    assert environment.step("jump").reward == pytest.approx(-0.1)


def test_where_nothing_helps_the_expert_says_so() -> None:
    environment = Sokoban()
    environment.reset(0)
    room, _ = read(ROOM)
    environment._room = room._replace(targets=frozenset({(1, 4)}))  # pyright: ignore[reportPrivateUsage]
    environment._state = State((2, 2), frozenset({(4, 1)}))  # pyright: ignore[reportPrivateUsage]
    action, ((_, thought),) = environment.expert()
    assert "cannot come home" in thought
    assert action in MOVES


def test_thoughts_are_checked_against_the_room() -> None:
    environment = Sokoban()
    environment.reset(3)
    action, ((name, thought),) = environment.expert()
    facts = environment.thought_facts(f'{{"{name}": {thought}, "action": "{action}"}}')
    assert [claim.claimed == claim.true for claim in facts.perceived] == [True, True, True]
    assert facts.concluded_actions == (action,)


def test_the_image_shows_every_cell() -> None:
    start = read(ROOM)
    room = start.room
    state = State((1, 1), frozenset({(1, 2), (3, 3)}))
    image = draw_room(60, room, state)
    seen = {cell: tuple(image[cell[0] * 10 + 5, cell[1] * 10 + 5]) for cell in np.ndindex(6, 6)}
    assert seen[0, 0] == WALL
    assert seen[1, 1] == PLAYER
    assert seen[1, 2] == BOX
    assert seen[3, 3] == PLACED
    assert seen[1, 4] == TARGET
    assert seen[2, 2] == FLOOR
    assert not image.flags.writeable


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 4}, "size is 4 — expected a whole number from 5 to 10"),
        ({"boxes": 0}, "boxes is 0 — expected a whole number from 1 to 3"),
        ({"view": "smell"}, "view is 'smell' — expected text, image or both"),
        ({"least_moves": 9}, "least_moves is 9 — expected a whole number from 1 to 7"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Sokoban(**options)  # type: ignore[arg-type]


def test_a_cell_is_a_token_of_the_tiny_model() -> None:
    game = Sokoban()
    rooms = [game.reset(seed).text or "" for seed in range(100)]
    tokenizer = train_tokenizer(rooms)
    assert {len(tokenizer.tokenize(room)) for room in rooms} == {6 * 6}
