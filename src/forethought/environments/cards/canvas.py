"""Colors, and the few strokes that every picture of the card games is made of."""

import numpy as np

from forethought.environments.cards.font import Mask
from forethought.types import Image

Color = tuple[int, int, int]
"""Red, green, blue, 0 to 255 each."""

PAPER: Color = (250, 247, 238)
"""The ground of every game, and of its cards: one brightness that a model can call nothing."""
INK: Color = (38, 42, 51)
RED: Color = (200, 36, 48)
BLUE: Color = (22, 84, 178)
SHADE: Color = (236, 233, 224)
EDGE: Color = (104, 112, 120)
BACK: Color = (58, 66, 140)
BACK_PATTERN: Color = (150, 160, 222)

MIN_SIZE, MAX_SIZE = 48, 1024
"""Side of a picture, pixels."""


def blank(height: int, width: int, color: Color) -> Image:
    """A picture of one color, uint8 [height, width, 3]."""
    canvas = np.empty((height, width, 3), dtype=np.uint8)
    canvas[:] = color
    return canvas


def stamp(canvas: Image, mask: Mask, x: int, y: int, color: Color) -> None:
    """Colors the pixels of `mask`, its top left corner at column `x`, row `y`."""
    height, width = mask.shape
    canvas[y : y + height, x : x + width][mask] = color


def freeze(canvas: Image) -> Image:
    """Makes a picture read-only, so that it may be cached and shared."""
    canvas.flags.writeable = False
    return canvas
