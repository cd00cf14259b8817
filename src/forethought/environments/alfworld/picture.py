"""The schematic picture: what the agent has before it, drawn from the facts.

Eight by eight cells. Above, the hand: what is held, with its state. Below, a row for each
receptacle at hand, itself first, with a ring that says closed, open, or a surface; then
what lies in or on it, if it is not closed. What is elsewhere, or behind a door, is not
shown. Before the agent went anywhere, all receptacles are shown, and nothing in them.
"""

from functools import lru_cache

import numpy as np
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont

from forethought.environments.alfworld.icons import CELL, GROUND, Ring, cell
from forethought.environments.alfworld.notes import kind
from forethought.environments.alfworld.progress import Situation
from forethought.types import Image

MIN_SIZE, MAX_SIZE = 48, 1024
SMALLEST_WITH_LABELS = 256
"""Side of a picture in which names can be read, pixels."""

CELLS = 8
BASE = CELLS * CELL

FLOOR = (214, 205, 190)
HAND = (250, 225, 200)
LIGHT = (255, 246, 190)
"""The ground while a lamp at hand is lit."""

STATE_RINGS = {"hot": Ring.HOT, "cool": Ring.COOL, "clean": Ring.CLEAN}

Row = tuple[str, ...]


def draw_scene(size: int, situation: Situation, *, labels: bool) -> Image:
    """The picture, uint8 [size, size, 3], read-only.

    Args:
        labels: names are written below the icons; needs 256 pixels.
    """
    rows = layout(situation)
    canvas = np.empty((BASE, BASE, 3), dtype=np.uint8)
    canvas[:] = LIGHT if _is_lit(situation) else GROUND
    canvas[:CELL] = HAND
    canvas[-2:] = FLOOR
    for y, row in enumerate(rows):
        for x, name in enumerate(row):
            if name:
                tile = cell(kind(name), _number(name), *_rings(name, situation))
                canvas[y * CELL : (y + 1) * CELL, x * CELL : (x + 1) * CELL] = tile
    picture = canvas[_stretched(size)][:, _stretched(size)]
    if labels:
        picture = _labeled(picture, rows)
    picture.flags.writeable = False
    return picture


def layout(situation: Situation) -> tuple[Row, ...]:
    """Which name goes into which cell, row by row; the first row is the hand."""
    rows: list[Row] = [(situation.held or "",)]
    if not situation.reachable:
        names = situation.receptacles
        rows += [names[first : first + CELLS] for first in range(0, len(names), CELLS)]
        return tuple(rows[:CELLS])
    for place in situation.reachable:
        inside = situation.contents.get(place, ()) if is_visible(place, situation) else ()
        rows.append((place, *inside[: CELLS - 1]))
        rest = inside[CELLS - 1 :]
        rows += [("", *rest[first : first + CELLS - 1]) for first in range(0, len(rest), CELLS - 1)]
    return tuple(rows[:CELLS])


def is_visible(place: str, situation: Situation) -> bool:
    """Whether one sees what lies in or on a receptacle at hand."""
    return place not in situation.openable or place in situation.opened


def _rings(name: str, situation: Situation) -> tuple[Ring, Ring]:
    if name in situation.receptacles:
        if not situation.reachable:
            return Ring.NONE, Ring.NONE
        if name not in situation.openable:
            return Ring.SURFACE, Ring.NONE
        return (Ring.OPEN if name in situation.opened else Ring.CLOSED), Ring.NONE
    if name in situation.toggled:
        return Ring.LIT, Ring.NONE
    rings = [STATE_RINGS[state] for state in sorted(situation.states.get(name, ()))]
    first, second, *_ = (*rings, Ring.NONE, Ring.NONE)
    return first, second


def _is_lit(situation: Situation) -> bool:
    at_hand = {thing for r in situation.reachable for thing in situation.contents.get(r, ())}
    return bool(at_hand & situation.toggled)


def _number(name: str) -> int:
    number = name.rpartition(" ")[2]
    return int(number) if number.isdigit() else 0


@lru_cache(maxsize=16)
def _stretched(size: int) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
    """Which pixel of the base each pixel of the picture repeats."""
    return np.arange(size) * BASE // size


def _labeled(picture: Image, rows: tuple[Row, ...]) -> Image:
    side = picture.shape[0] / CELLS
    canvas = Pillow.fromarray(picture)
    pen, font = ImageDraw.Draw(canvas), _font(max(8, round(side / 4)))
    for y, row in enumerate(rows):
        for x, name in enumerate(row):
            if name:
                at = (x * side + 1, (y + 0.72) * side)
                pen.text(at, name, fill=(0, 0, 0), font=font, stroke_width=1, stroke_fill=GROUND)
    return np.array(canvas)


@lru_cache(maxsize=8)
def _font(height: int) -> "ImageFont.FreeTypeFont | ImageFont.ImageFont":
    return ImageFont.load_default(height)
