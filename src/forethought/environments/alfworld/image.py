"""The schematic image: what the agent has before it, drawn from the facts.

A cell is 8 pixels on a side, one patch of a small vision tower: a
ring that shows a state, inside it 5 x 5 pixels of pattern, and below the number of the
thing, in binary. No two classes of things share pattern and color.
"""

import hashlib
from enum import Enum
from functools import lru_cache

import numpy as np
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont

from forethought.environments.alfworld.notes import kind
from forethought.environments.alfworld.progress import Situation
from forethought.types import Image

CELL = 8
"""Pixels on a side."""
GLYPH = 5
NUMBER_BITS = 6
"""Things are numbered below 64."""

Color = tuple[int, int, int]

GROUND: Color = (242, 242, 242)
"""Ground of every cell; close to what the tiny model calls nothing."""
NUMBER_INK: Color = (20, 20, 20)

INKS: tuple[Color, ...] = (
    (170, 30, 30),
    (190, 100, 10),
    (130, 120, 0),
    (30, 120, 40),
    (0, 120, 120),
    (30, 80, 180),
    (90, 50, 170),
    (160, 30, 120),
    (60, 60, 60),
    (110, 70, 40),
)


class Ring(Enum):
    """What the frame of a cell says."""

    NONE = GROUND
    SURFACE = (150, 150, 150)
    CLOSED = (40, 40, 40)
    OPEN = (90, 200, 90)
    HOT = (255, 60, 0)
    COOL = (0, 120, 255)
    CLEAN = (0, 210, 210)
    LIT = (255, 200, 0)


@lru_cache(maxsize=512)
def glyph(kind: str) -> tuple[tuple[tuple[bool, ...], ...], Color]:
    """Pattern and color of a class: mirrored, from a digest of its name."""
    digest = hashlib.sha256(kind.encode()).digest()
    half = GLYPH // 2 + 1
    bits = int.from_bytes(digest[:4], "big") | 1 << (GLYPH // 2 * half)  # never empty
    rows: list[tuple[bool, ...]] = []
    for row in range(GLYPH):
        left = [bool(bits >> (row * half + column) & 1) for column in range(half)]
        rows.append((*left, *left[GLYPH - half - 1 :: -1]))
    return tuple(rows), INKS[digest[4] % len(INKS)]


@lru_cache(maxsize=8192)
def cell(kind: str, number: int, outer: Ring, inner: Ring = Ring.NONE) -> Image:
    """One thing, uint8 [8, 8, 3], read-only.

    Args:
        number: as in "mug 2"; 0 where it has none.
        outer: the upper half of the ring.
        inner: the lower half: a second state, for what is hot and clean.
    """
    tile = np.empty((CELL, CELL, 3), dtype=np.uint8)
    tile[:] = GROUND
    second = outer if inner is Ring.NONE else inner
    tile[0, : GLYPH + 2] = outer.value
    tile[: GLYPH // 2 + 1, (0, GLYPH + 1)] = outer.value
    tile[GLYPH // 2 + 1 : GLYPH + 2, (0, GLYPH + 1)] = second.value
    tile[GLYPH + 1, : GLYPH + 2] = second.value
    pattern, ink = glyph(kind)
    tile[1 : GLYPH + 1, 1 : GLYPH + 1][np.array(pattern)] = ink
    for bit in range(NUMBER_BITS):
        if number >> bit & 1:
            tile[CELL - 1, NUMBER_BITS - 1 - bit] = NUMBER_INK
    tile.flags.writeable = False
    return tile


MIN_SIZE, MAX_SIZE = 48, 1024
SMALLEST_WITH_LABELS = 256
"""Side of an image in which names can be read, pixels."""

CELLS = 8
BASE = CELLS * CELL

FLOOR = (214, 205, 190)
HAND = (250, 225, 200)
LIGHT = (255, 246, 190)
"""The ground while a lamp at hand is lit."""

STATE_RINGS = {"hot": Ring.HOT, "cool": Ring.COOL, "clean": Ring.CLEAN}

Row = tuple[str, ...]


def draw_scene(size: int, situation: Situation, *, labels: bool) -> Image:
    """Draws the image, uint8 [size, size, 3], read-only.

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
    image = canvas[_stretched(size)][:, _stretched(size)]
    if labels:
        image = _labeled(image, rows)
    image.flags.writeable = False
    return image


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
    """Which pixel of the base each pixel of the image repeats."""
    return np.arange(size) * BASE // size


def _labeled(image: Image, rows: tuple[Row, ...]) -> Image:
    side = image.shape[0] / CELLS
    canvas = Pillow.fromarray(image)
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
