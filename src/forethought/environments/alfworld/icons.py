"""One small picture per class of thing: a pattern and a color that no other class has.

A cell of the schematic picture is 8 pixels on a side, one patch of a small vision tower: a
ring that tells a state, inside it 5 x 5 pixels of pattern, and below the number of the
thing, in binary.
"""

import hashlib
from enum import Enum
from functools import lru_cache

import numpy as np

from forethought.types import Image

CELL = 8
"""Pixels on a side."""
GLYPH = 5
NUMBER_BITS = 6
"""Things are numbered below 64."""

Color = tuple[int, int, int]

GROUND: Color = (242, 242, 242)
"""Of every cell; close to what the tiny model calls nothing."""
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
