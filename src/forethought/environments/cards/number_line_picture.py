"""The picture of NumberLine: two lines of text, large enough for 8-pixel patches."""

from functools import lru_cache

from forethought.environments.cards.canvas import (
    BLUE,
    INK,
    PAPER,
    RED,
    Color,
    blank,
    freeze,
    stamp,
)
from forethought.environments.cards.font import (
    RANK_HEIGHT,
    TEXT_CAPITAL_HEIGHT,
    number_mask,
    text_mask,
)
from forethought.types import Image

LABEL_SIZE = 64
"""Labels grow by one pixel per stroke for every so many pixels of the picture's side."""

NUMBER_SHARE = 0.32
"""Height of the numbers over the picture's side, at most."""


@lru_cache(maxsize=128)
def number_line_picture(size: int, target: int, current: int, widest: int) -> Image:
    """ "Target: x" above "Current: y", read-only.

    Args:
        size: side of the square picture, pixels.
        widest: the largest number that may appear; it decides the scale, so that
            all pictures of one world share their layout.
    """
    label_scale = max(1, size // LABEL_SIZE)
    label_width = text_mask("Current:", label_scale).shape[1]
    number_scale = max(
        1,
        min(
            (size - label_width) // number_mask(widest, 1).shape[1],
            int(NUMBER_SHARE * size) // RANK_HEIGHT,
        ),
    )
    gap = (size - label_width - number_mask(widest, number_scale).shape[1]) // 3
    number_left = gap + label_width + gap
    canvas = blank(size, size, PAPER)
    lines: tuple[tuple[str, int, Color, float], ...] = (
        ("Target:", target, BLUE, 0.28),
        ("Current:", current, RED, 0.72),
    )
    for label, number, color, middle in lines:
        row = round(middle * size)
        top = row - label_scale * TEXT_CAPITAL_HEIGHT // 2
        stamp(canvas, text_mask(label, label_scale), gap, top, INK)
        top = row - number_scale * RANK_HEIGHT // 2
        stamp(canvas, number_mask(number, number_scale), number_left, top, color)
    return freeze(canvas)
