"""Playing cards as small pictures, drawn once per size and shared."""

from functools import lru_cache

import numpy as np

from forethought.environments.cards.canvas import (
    BACK,
    BACK_PATTERN,
    EDGE,
    INK,
    PAPER,
    RED,
    blank,
    freeze,
    stamp,
)
from forethought.environments.cards.deck import SUIT_NAMES, Card
from forethought.environments.cards.font import (
    RANK_HEIGHT,
    RANK_WIDTH,
    Mask,
    rank_mask,
    read_sheet,
    scaled,
)
from forethought.types import Image

PIPS = read_sheet("""
    hearts  spades  diamonds clubs
    .##.##. ...#... ...#...  ..###..
    ####### ..###.. ..###..  ..###..
    ####### .#####. .#####.  #######
    ####### ####### #######  #######
    .#####. ####### .#####.  ##.#.##
    ..###.. .#.#.#. ..###..  ...#...
    ...#... ..###.. ...#...  ..###..
""")
PIP_SIDE = 7

CARD_GAP_SHARE = 48
"""The gap between two cards is one pixel for every so many pixels of the picture's side."""


def card_gap(size: int) -> int:
    """Pixels between two cards, in a picture of this side."""
    return max(1, size // CARD_GAP_SHARE)


def card_width(size: int, columns: int) -> int:
    """Width of a card where `columns` of them stand side by side in a picture."""
    return (size - (columns + 1) * card_gap(size)) // columns


@lru_cache(maxsize=512)
def card_tile(card: Card, width: int, height: int) -> Image:
    """A card, face up: its rank in the upper left corner, its suit in the lower right.

    The rank is as large as fits, never below one pixel per stroke; the suit is left
    out where no room remains. Read-only.
    """
    border, pad = border_width(width), width // 12
    tile = _sheet(width, height)
    across = width - 2 * border - 2 * pad
    down = height - 2 * border - 3 * pad
    scale = max(1, min(across // RANK_WIDTH, down // (RANK_HEIGHT + PIP_SIDE)))
    color = RED if SUIT_NAMES[card.suit] in ("hearts", "diamonds") else INK
    stamp(tile, rank_mask(card.name, scale), border + pad, border + pad, color)
    if (RANK_HEIGHT + PIP_SIDE) * scale < height - 2 * border - 2 * pad:
        corner = border + pad + PIP_SIDE * scale
        pip = scaled(PIPS[SUIT_NAMES[card.suit]], scale)
        stamp(tile, pip, width - corner, height - corner, color)
    return freeze(tile)


@lru_cache(maxsize=64)
def back_tile(width: int, height: int) -> Image:
    """A card, face down. Read-only."""
    tile = _sheet(width, height)
    inset = 2 * border_width(width)
    rows, columns = np.ogrid[inset : height - inset, inset : width - inset]
    stroke = max(2, width // 10)
    squares = (rows // stroke + columns // stroke) % 2 == 0
    stamp(tile, np.ones_like(squares), inset, inset, BACK)
    stamp(tile, squares, inset, inset, BACK_PATTERN)
    return freeze(tile)


def border_width(width: int) -> int:
    """Pixels of the edge of a card that is so wide."""
    return max(1, width // 40)


def _sheet(width: int, height: int) -> Image:
    """An empty card with an edge and round corners, on the table."""
    tile = blank(height, width, PAPER)
    radius = max(1, width // 10)
    stamp(tile, _rounded(width, height, radius), 0, 0, EDGE)
    border = border_width(width)
    inner = _rounded(width - 2 * border, height - 2 * border, max(0, radius - border))
    stamp(tile, inner, border, border, PAPER)
    return tile


def _rounded(width: int, height: int, radius: int) -> Mask:
    """A rectangle whose corners are quarter circles."""
    rows, columns = np.ogrid[0:height, 0:width]
    beyond_row = np.maximum(radius - 0.5 - np.minimum(rows, height - 1 - rows), 0)
    beyond_column = np.maximum(radius - 0.5 - np.minimum(columns, width - 1 - columns), 0)
    return beyond_row**2 + beyond_column**2 <= max(radius, 0.5) ** 2
