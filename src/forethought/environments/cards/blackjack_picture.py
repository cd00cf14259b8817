"""The picture of Blackjack: the dealer's cards above, the player's below, fanned out."""

from functools import lru_cache

from forethought.environments.cards.canvas import INK, PAPER, blank, freeze, stamp
from forethought.environments.cards.deck import Card
from forethought.environments.cards.font import TEXT_CAPITAL_HEIGHT, TEXT_HEIGHT, text_mask
from forethought.environments.cards.tiles import back_tile, card_gap, card_tile, card_width
from forethought.types import Image

COLUMNS = 4
"""Cards that stand side by side; more of them overlap, their corners showing."""


@lru_cache(maxsize=64)
def blackjack_picture(
    size: int, dealer: tuple[Card, ...], player: tuple[Card, ...], hides_second: bool
) -> Image:
    """Both hands, every card on the canvas, read-only.

    Args:
        size: side of the square picture, pixels.
        hides_second: the dealer's second card lies face down.
    """
    canvas = _table(size).copy()
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
def _table(size: int) -> Image:
    canvas = blank(size, size, PAPER)
    for row, owner in enumerate(("Dealer", "Player")):
        mask = text_mask(owner, _text_scale(size))
        stamp(canvas, mask, size // 32, row * size // 2 + card_gap(size), INK)
    return freeze(canvas)


def _hand_top(size: int, row: int) -> int:
    """Row of pixels where a hand begins. In small pictures the cards cover the tail of the
    label's y: rank and suit need the height."""
    label = (TEXT_HEIGHT if size >= 96 else TEXT_CAPITAL_HEIGHT) * _text_scale(size)
    return row * size // 2 + card_gap(size) + label + card_gap(size)


def _card_height(size: int) -> int:
    return size // 2 - _hand_top(size, 0) - card_gap(size)


def _text_scale(size: int) -> int:
    return max(1, size // 96)
