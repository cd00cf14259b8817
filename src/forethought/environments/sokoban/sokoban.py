"""Sokoban: push every box onto a target."""

import json
from functools import lru_cache
from typing import Literal

import numpy as np

from forethought.environments.contract import Ceiling, ExpertAction, Transition
from forethought.environments.parts import (
    Episode,
    concluded,
    is_whole_number,
    last_match,
    read_field,
    require_option,
    require_whole_number,
)
from forethought.environments.sokoban.rooms import (
    MOVES,
    Cell,
    Room,
    State,
    is_held_out,
    make_room,
    moved,
    solution,
)
from forethought.types import Claim, Image, Metric, Observation, ThoughtFacts

MIN_SIZE, MAX_SIZE = 48, 1024
WALL, FLOOR = (90, 90, 100), (235, 230, 215)
TARGET, BOX, PLACED, PLAYER = (210, 60, 60), (170, 115, 50), (60, 150, 70), (50, 90, 190)
_DOT, _DISC = 0.22, 0.36
"""Radius of a target's dot and of the player's disc, in cells."""
_BOX = 0.38
"""Half the side of a box, in cells."""


@lru_cache(maxsize=4096)
def draw_room(size: int, room: Room, state: State) -> Image:
    """uint8 [size, size, 3], read-only. Walls grey; a target is a red dot, a box a brown square,
    green on a target; the player a blue disc."""
    places = (np.arange(size) + 0.5) * room.size / size
    rows, columns = np.floor(places).astype(int)[:, None], np.floor(places).astype(int)[None, :]
    offsets = places - np.floor(places) - 0.5
    distance = np.hypot(offsets[:, None], offsets[None, :])
    edge = np.maximum(np.abs(offsets[:, None]), np.abs(offsets[None, :]))
    image = np.empty((size, size, 3), np.uint8)
    image[:] = FLOOR
    for cell in room.walls:
        image[(rows == cell[0]) & (columns == cell[1])] = WALL
    for cell in state.boxes:
        here = (rows == cell[0]) & (columns == cell[1]) & (edge < _BOX)
        image[here] = PLACED if cell in room.targets else BOX
    player = (rows == state.player[0]) & (columns == state.player[1]) & (distance < _DISC)
    image[player] = PLAYER
    for cell in room.targets - state.boxes:
        image[(rows == cell[0]) & (columns == cell[1]) & (distance < _DOT)] = TARGET
    image.flags.writeable = False
    return image


ACTIONS = tuple(MOVES)
View = Literal["text", "image", "both"]
EVALUATION_SEEDS = 1 << 61
"""Held-out episodes have seeds from here on (`rollouts/seeding.py`)."""
STEP_REWARD, ON_TARGET, SOLVED = -0.1, 1.0, 10.0


class Sokoban:
    """Push every box onto a target, in a room seen from above.

    Description: the player walks in four directions, and pushes a box that is ahead if the cell
    behind it is free. Boxes cannot be pulled. Rewards and symbols are those of gym-sokoban and of
    verl-agent, whose GiGPO is trained on rooms of 6 × 6 with one box.

    Observation: rows of symbols (`view` text): `#` wall, `_` floor, `O` target, `X` box, `V` box
    on a target, `P` player, `S` player on a target; or uint8 [image_size, image_size, 3] (image);
    or both.

    Actions: `up`, `down`, `left`, `right`.

    Rewards: -0.1 a step; +1 for a box that comes onto a target, -1 for one that leaves it; +10
    when all are on targets. A text that names no action costs a step, too, and moves nothing.

    Start: a random room with at most 4 walls inside; the boxes are pulled away from their targets
    by random moves of a player that pulls, so every room can be solved; rooms whose shortest
    solution has fewer than `least_moves` or more than `limit_steps` moves, or in which a box is
    on a target, are drawn again. A fixed fifth of the rooms, by a digest of room, boxes and
    player, is dealt to held-out seeds alone, so no held-out room is ever trained on.

    End: terminated when all boxes are on targets; truncated after `limit_steps` steps.

    Success: all boxes are on targets.

    Ceiling: 100 %, exact: rooms are kept only where breadth-first search solves them in time.

    Arguments:
        size: cells on a side, the outer wall included, 5 to 10.
        boxes: 1 to 3.
        limit_steps: 5 to 200; verl-agent's is 15.
        least_moves: of the shortest solution, 1 to half of limit_steps.
        view: text, image or both.
        image_size: side of the image, 48 to 1024 pixels.

    Version history:
        v0: first version.
    """

    def __init__(
        self,
        size: int = 6,
        boxes: int = 1,
        limit_steps: int = 15,
        least_moves: int = 4,
        view: View = "text",
        image_size: int = 300,
    ) -> None:
        require_whole_number("size", size, 5, 10)
        require_whole_number("boxes", boxes, 1, 3)
        require_whole_number("limit_steps", limit_steps, 5, 200)
        expected = f"a whole number from 1 to {limit_steps // 2}, half of limit_steps"
        is_least = is_whole_number(least_moves, 1, limit_steps // 2)
        require_option(is_least, "least_moves", least_moves, expected)
        require_option(view in ("text", "image", "both"), "view", view, "text, image or both")
        require_whole_number("image_size", image_size, MIN_SIZE, MAX_SIZE)
        self._size, self._boxes, self._view = size, boxes, view
        self._image_size = image_size
        self._moves = range(least_moves, limit_steps + 1)
        self._pushes = 0
        self._episode = Episode(limit_steps)
        self._room = Room(size, frozenset(), frozenset())
        self._state = State((0, 0), frozenset())

    @property
    def actions(self) -> tuple[str, ...]:
        """The four directions."""
        return ACTIONS

    @property
    def ceiling(self) -> Ceiling:
        """Every room is solvable within the limit, so 1."""
        return Ceiling(1.0, "exact: every room is solved by search before it is played")

    def reset(self, seed: int) -> Observation:
        """Makes the room of the seed."""
        randomness = np.random.default_rng(seed)
        held_out = seed >= EVALUATION_SEEDS
        start = make_room(self._size, self._boxes, self._moves, randomness)
        while is_held_out(start) != held_out:
            start = make_room(self._size, self._boxes, self._moves, randomness)
        self._room, self._state = start.room, start.state
        self._pushes = 0
        self._episode.begin()
        return self.observation()

    def observation(self) -> Observation:
        """The room as characters, as an image, or both."""
        text = self._text()
        image = None
        if self._view != "text":
            image = draw_room(self._image_size, self._room, self._state)
        return Observation(
            text=None if self._view == "image" else text,
            image=image,
            admissible_actions=None,
            state_key=text,
            goal="Push the box onto the target." if self._boxes == 1 else "Push all boxes home.",
            task_type="Sokoban",
        )

    def step(self, action: str) -> Transition:
        """Moves the player, and a box before it.

        Raises:
            RuntimeError: the episode is over.
        """
        self._episode.require_open()
        before = self._state
        if action in MOVES:
            self._state = moved(self._room, before, action)
        self._pushes += before.boxes != self._state.boxes
        is_solved = self._room.is_solved(self._state)
        gained = self._on_target(self._state) - self._on_target(before)
        reward = STEP_REWARD + ON_TARGET * gained + (SOLVED if is_solved else 0.0)
        return self._episode.record(reward, terminated=is_solved)

    def legal_actions(self) -> tuple[str, ...]:
        """The four directions; none once the episode is over."""
        return () if self._episode.is_over else ACTIONS

    def expert(self) -> ExpertAction:
        """The next move of a shortest solution, with the push that it prepares."""
        self._episode.require_open()
        room, state = self._room, self._state
        moves = solution(room, state)
        seen = f"player {_said(state.player)}, box {self._said_boxes()}, target " + ", ".join(
            map(_said, sorted(room.targets - state.boxes))
        )
        if moves is None:
            action = self._sideways()
            thought = f"{seen}. the box cannot come home, so I go {action}"
        else:
            action = moves[0]
            thought = f"{seen}. {_next_push(room, state, moves)}, so I go {action}"
        return ExpertAction(action, (("thoughts", json.dumps(thought)),))

    def thought_facts(self, response: str) -> ThoughtFacts:
        """Where the player, the box and the target are said to be (with one box)."""
        thoughts = read_field(response, "thoughts")
        truth = {
            "player": _said(self._state.player),
            "box": self._said_boxes(),
            "target": ", ".join(map(_said, sorted(self._room.targets - self._state.boxes))),
        }
        claims = tuple(
            Claim(name, last_match(rf"{name} (\d+ \d+)", thoughts), true)
            for name, true in truth.items()
        )
        said = concluded(rf"so I go ({'|'.join(ACTIONS)})", thoughts)
        return ThoughtFacts(perceived=claims, inferred=(), concluded_actions=said)

    def success(self) -> bool:
        """Whether every box is on a target."""
        return self._room.is_solved(self._state)

    def metrics(self) -> tuple[Metric, ...]:
        """Boxes on targets, as a share; pushes."""
        return (
            Metric("progress", self._on_target(self._state) / self._boxes),
            Metric("pushes", float(self._pushes)),
        )

    def close(self) -> None:
        """Nothing is held open."""

    def _on_target(self, state: State) -> int:
        return len(state.boxes & self._room.targets)

    def _said_boxes(self) -> str:
        return ", ".join(map(_said, sorted(self._state.boxes - self._room.targets)))

    def _sideways(self) -> str:
        """A move that changes something, where the game is lost; the first one otherwise."""
        for action in ACTIONS:
            if moved(self._room, self._state, action) != self._state:
                return action
        return ACTIONS[0]

    def _text(self) -> str:
        room, state = self._room, self._state

        def symbol(cell: Cell) -> str:
            is_target = cell in room.targets
            if cell in room.walls:
                return "#"
            if cell == state.player:
                return "S" if is_target else "P"
            if cell in state.boxes:
                return "V" if is_target else "X"
            return "O" if is_target else "_"

        rows = range(room.size)
        return "\n".join(" ".join(symbol((row, column)) for column in rows) for row in rows)


def _said(cell: Cell) -> str:
    return f"{cell[0]} {cell[1]}"


def _next_push(room: Room, state: State, moves: tuple[str, ...]) -> str:
    """The next push of a solution: which way, and from where."""
    for action in moves:
        after = moved(room, state, action)
        if after.boxes != state.boxes:
            return f"push {action} from {_said(state.player)}"
        state = after
    return "all is done"
