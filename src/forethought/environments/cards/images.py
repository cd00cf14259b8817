"""Images of the four card games, each uint8 [size, size, 3].

NumberLine: two lines of text, large enough for 8-pixel patches. Blackjack: the dealer's cards
above, the player's below, fanned out. EZPoints and Points24: the cards, and the formula below.
"""

from functools import lru_cache

from forethought.environments.cards.drawing import (
    BLUE,
    GAP,
    INK,
    PAPER,
    RANK_HEIGHT,
    RED,
    SHADE,
    TEXT_CAPITAL_HEIGHT,
    TEXT_HEIGHT,
    Card,
    Color,
    back_tile,
    blank,
    card_gap,
    card_tile,
    card_width,
    freeze,
    number_mask,
    stamp,
    text_mask,
)
from forethought.types import Image

LABEL_SIZE = 64
"""Labels grow by one pixel per stroke for every so many pixels of the image's side."""

NUMBER_SHARE = 0.32
"""Height of the numbers over the image's side, at most."""


@lru_cache(maxsize=128)
def number_line_image(size: int, target: int, current: int, widest: int) -> Image:
    """ "Target: x" above "Current: y", read-only.

    Args:
        size: side of the square image, pixels.
        widest: the largest number that may appear; it decides the scale, so that
            all images of one environment share their layout.
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


COLUMNS = 4
"""Cards side by side; more of them overlap, their corners showing."""


@lru_cache(maxsize=64)
def blackjack_image(
    size: int, dealer: tuple[Card, ...], player: tuple[Card, ...], hides_second: bool
) -> Image:
    """Both hands, every card on the canvas, read-only.

    Args:
        size: side of the square image, pixels.
        hides_second: the dealer's second card lies face down.
    """
    canvas = _empty_blackjack(size).copy()
    width, height = card_width(size, COLUMNS), _card_height(size)
    tiles = [card_tile(card, width, height) for card in dealer]
    if hides_second:
        tiles[1] = back_tile(width, height)
    _fan(canvas, tiles, _hand_top(size, 0))
    _fan(canvas, [card_tile(card, width, height) for card in player], _hand_top(size, 1))
    return freeze(canvas)


def _fan(canvas: Image, tiles: list[Image], top: int) -> None:
    """Lays cards from left to right, closer together where they would not fit."""
    size = canvas.shape[1]
    height, width = tiles[0].shape[:2]
    gap = card_gap(size)
    room = size - 2 * gap - width
    step = min(width + gap, room / max(1, len(tiles) - 1))
    for position, tile in enumerate(tiles):
        left = gap + int(position * step)
        canvas[top : top + height, left : left + width] = tile


@lru_cache(maxsize=8)
def _empty_blackjack(size: int) -> Image:
    canvas = blank(size, size, PAPER)
    for row, owner in enumerate(("Dealer", "Player")):
        mask = text_mask(owner, _label_scale(size))
        stamp(canvas, mask, size // 32, row * size // 2 + card_gap(size), INK)
    return freeze(canvas)


def _hand_top(size: int, row: int) -> int:
    """Row of pixels where a hand begins. In small images the cards cover the tail of the
    label's y: rank and suit need the height."""
    label = (TEXT_HEIGHT if size >= 96 else TEXT_CAPITAL_HEIGHT) * _label_scale(size)
    return row * size // 2 + card_gap(size) + label + card_gap(size)


def _card_height(size: int) -> int:
    return size // 2 - _hand_top(size, 0) - card_gap(size)


def _label_scale(size: int) -> int:
    return max(1, size // 96)


LINE_HEIGHT = 8
"""Pixels from line to line at text scale 1: the capitals and a blank row."""


@lru_cache(maxsize=64)
def formula_image(size: int, cards: tuple[Card, ...], tokens: tuple[str, ...], lines: int) -> Image:
    """The cards in a row, "Formula:" below them, and the tokens on the last lines.

    Lines break between tokens. Where a long formula does not fit (only below 64
    pixels) its last lines are shown. Read-only.

    Args:
        size: side of the square image, pixels.
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
