"""Rooms of Sokoban: what a move does, how rooms are made, and how they are solved."""

import hashlib
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

Cell = tuple[int, int]
"""Row and column, from 0 at the top left."""

MOVES: dict[str, Cell] = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
MAX_WALLS_INSIDE = 4
"""Walls inside a room of 6 × 6; larger rooms have as many per floor cell."""
HELD_OUT_OF = 5
"""One start in so many is held out."""
PULLS = 12
"""Boxes are pulled away from their targets by at most so many moves."""


class State(NamedTuple):
    """What moves."""

    player: Cell
    boxes: frozenset[Cell]


class Room(NamedTuple):
    """What stays."""

    size: int
    walls: frozenset[Cell]
    targets: frozenset[Cell]

    def is_solved(self, state: State) -> bool:
        """Whether every box is on a target."""
        return state.boxes == self.targets


class Start(NamedTuple):
    """How an episode begins."""

    room: Room
    state: State


def moved(room: Room, state: State, action: str) -> State:
    """Where a move leads; into a wall, or a box that cannot be pushed, nowhere."""
    step = MOVES[action]
    ahead = _plus(state.player, step)
    if ahead in room.walls:
        return state
    if ahead not in state.boxes:
        return State(ahead, state.boxes)
    behind = _plus(ahead, step)
    if behind in room.walls or behind in state.boxes:
        return state
    return State(ahead, state.boxes - {ahead} | {behind})


@lru_cache(maxsize=1 << 14)
def solution(room: Room, state: State) -> tuple[str, ...] | None:
    """The shortest way to the end, by breadth-first search; None: there is none."""
    if room.is_solved(state):
        return ()
    came_from: dict[State, tuple[State, str]] = {}
    queue = deque([state])
    seen = {state}
    while queue:
        here = queue.popleft()
        for action in MOVES:
            there = moved(room, here, action)
            if there in seen:
                continue
            seen.add(there)
            came_from[there] = (here, action)
            if room.is_solved(there):
                return tuple(_way_back(there, came_from))[::-1]
            queue.append(there)
    return None


def make_room(size: int, boxes: int, lengths: range, randomness: np.random.Generator) -> Start:
    """A room whose shortest solution has one of these lengths.

    Solvable by construction: the boxes begin on their targets and are pulled away. The search
    for the shortest solution is what holds it to the limit.
    """
    while True:
        room, state = _pulled(size, boxes, randomness)
        moves = solution(room, state)
        if moves and len(moves) in lengths and not state.boxes & room.targets:
            return Start(room, state)


def is_held_out(start: Start) -> bool:
    """Whether a start belongs to the fixed fifth that held-out seeds deal."""
    room, state = start
    parts = (sorted(room.walls), sorted(room.targets), sorted(state.boxes), state.player)
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return int.from_bytes(digest[:4], "big") % HELD_OUT_OF == 0


def _pulled(size: int, boxes: int, randomness: np.random.Generator) -> Start:
    """A random room, and a state from which its boxes can be pushed back."""
    border = {cell for cell in np.ndindex(size, size) if 0 in cell or size - 1 in cell}
    inside = [cell for cell in np.ndindex(size, size) if cell not in border]
    most = MAX_WALLS_INSIDE * len(inside) // 16
    order = [inside[i] for i in randomness.permutation(len(inside))]
    count = int(randomness.integers(most + 1))
    walls, floor = frozenset(border | set(order[:count])), order[count:]
    targets = frozenset(floor[:boxes])
    room, state = Room(size, walls, targets), State(floor[boxes], targets)
    for _ in range(int(randomness.integers(PULLS // 2, 10 * PULLS))):
        state = _pull(room, state, list(MOVES)[int(randomness.integers(4))])
    return Start(room, state)


def _pull(room: Room, state: State, action: str) -> State:
    """The player steps, and draws after it the box at its back, if there is one: a push,
    backwards in time."""
    step = MOVES[action]
    there = _plus(state.player, step)
    if there in room.walls or there in state.boxes:
        return state
    back = (state.player[0] - step[0], state.player[1] - step[1])
    boxes = state.boxes - {back} | {state.player} if back in state.boxes else state.boxes
    return State(there, boxes)


def _plus(cell: Cell, step: Cell) -> Cell:
    return cell[0] + step[0], cell[1] + step[1]


def _way_back(state: State, came_from: dict[State, tuple[State, str]]) -> Iterator[str]:
    while state in came_from:
        state, action = came_from[state]
        yield action
