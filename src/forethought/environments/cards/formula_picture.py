"""The picture of EZPoints and Points24: the cards, and the formula typed so far below."""

from functools import lru_cache

from forethought.environments.cards.canvas import (
    INK,
    PAPER,
    SHADE,
    blank,
    freeze,
    stamp,
)
from forethought.environments.cards.deck import Card
from forethought.environments.cards.font import GAP, TEXT_CAPITAL_HEIGHT, text_mask
from forethought.environments.cards.tiles import card_gap, card_tile, card_width
from forethought.types import Image

LINE_HEIGHT = 8
"""Pixels from line to line at text scale 1: the capitals and a blank row."""


@lru_cache(maxsize=64)
def formula_picture(
    size: int, cards: tuple[Card, ...], tokens: tuple[str, ...], lines: int
) -> Image:
    """The cards in a row, "Formula:" below them, and the tokens on the last lines.

    Lines break between tokens. Where a long formula does not fit (only below 64
    pixels) its last lines are shown. Read-only.

    Args:
        size: side of the square picture, pixels.
        lines: how many lines are kept for the formula.
    """
    canvas = _table(size, cards, lines).copy()
    scale = _text_scale(size)
    gap = GAP * scale
    places: list[tuple[str, int, int]] = []
    margin = size // 32
    x, line = margin, 0
    for token in tokens:
        width = text_mask(token, scale).shape[1]
        if x + width > size:
            x, line = margin, line + 1
        places.append((token, x, line))
        x += width + gap
    hidden = max(0, line - lines + 1)
    top = size - lines * LINE_HEIGHT * scale
    for token, x, line in places:
        if line >= hidden:
            tile = _token_tile(token, scale)
            y = top + (line - hidden) * LINE_HEIGHT * scale
            canvas[y : y + tile.shape[0], x : x + tile.shape[1]] = tile
    return freeze(canvas)


@lru_cache(maxsize=64)
def _table(size: int, cards: tuple[Card, ...], lines: int) -> Image:
    """All that stays the same while a formula is typed."""
    canvas = _empty_table(size, lines).copy()
    strip, gap = _strip_top(size, lines), card_gap(size)
    width = card_width(size, len(cards))
    height = min(strip - 2 * gap, 3 * width)
    left = (size - len(cards) * width - (len(cards) - 1) * gap) // 2
    top = (strip - height) // 2
    for position, card in enumerate(cards):
        x = left + position * (width + gap)
        canvas[top : top + height, x : x + width] = card_tile(card, width, height)
    return freeze(canvas)


@lru_cache(maxsize=8)
def _empty_table(size: int, lines: int) -> Image:
    scale, strip = _text_scale(size), _strip_top(size, lines)
    canvas = blank(size, size, PAPER)
    canvas[strip:] = SHADE
    stamp(canvas, text_mask("Formula:", scale), size // 32, strip + scale, INK)
    return freeze(canvas)


@lru_cache(maxsize=256)
def _token_tile(token: str, scale: int) -> Image:
    """A token on the strip; opaque, so that it can be copied whole."""
    mask = text_mask(token, scale)[: TEXT_CAPITAL_HEIGHT * scale]
    height, width = mask.shape
    tile = blank(height, width, SHADE)
    stamp(tile, mask, 0, 0, INK)
    return freeze(tile)


def _strip_top(size: int, lines: int) -> int:
    """First row of the shaded strip that holds the label and the formula."""
    scale = _text_scale(size)
    return size - (lines + 1) * LINE_HEIGHT * scale - scale


def _text_scale(size: int) -> int:
    return max(1, size // 64)
