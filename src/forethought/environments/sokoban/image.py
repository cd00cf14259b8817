"""Sokoban's image: one tile per cell."""

from functools import lru_cache

import numpy as np

from forethought.environments.sokoban.rooms import Room, State
from forethought.types import Image

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
