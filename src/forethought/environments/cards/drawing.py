"""Playing cards: ranks, suits, and how they are drawn from an endless deck."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forethought.types import Image

RANK_NAMES = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")
SUIT_NAMES = ("hearts", "spades", "diamonds", "clubs")

ACE, TEN, KING = 1, 10, 13


class Card(NamedTuple):
    """One card. Cards are drawn with replacement, so equal cards may meet."""

    rank: int
    """1 (ace) to 13 (king)."""
    suit: int
    """Index into `SUIT_NAMES`; it never matters to the rules."""

    @property
    def name(self) -> str:
        """The rank as it is printed: "A", "2" … "10", "J", "Q", "K"."""
        return RANK_NAMES[self.rank - 1]

    @property
    def points(self) -> int:
        """The rank, with J, Q and K counting 10."""
        return min(self.rank, TEN)


def draw_card(random: np.random.Generator, *, low: int = ACE, high: int = KING) -> Card:
    """A card of a uniformly random rank in [low, high] and a uniformly random suit."""
    suits = len(SUIT_NAMES)
    number = int(random.integers(low * suits, (high + 1) * suits))
    return Card(number // suits, number % suits)


Mask = NDArray[np.bool_]
"""Where ink goes, bool [height, width]."""


def read_sheet(sheet: str) -> dict[str, Mask]:
    """Reads glyphs drawn side by side: names on the first line, `#` for ink below."""
    names, *rows = [line.split() for line in sheet.strip().splitlines()]
    columns = zip(*rows, strict=True)
    return {
        name: np.array([[mark == "#" for mark in row] for row in column])
        for name, column in zip(names, columns, strict=True)
    }


TEXT = {
    **read_sheet("""
        0    1   2    3    4    5    6    7    8    9
        .##. .#. .##. ###. #..# #### .##. #### .##. .##.
        #..# ##. #..# ...# #..# #... #... ...# #..# #..#
        #..# .#. ...# ...# #..# #... #... ...# #..# #..#
        #..# .#. ..#. .##. #### ###. ###. ..#. .##. .###
        #..# .#. .#.. ...# ...# ...# #..# ..#. #..# ...#
        #..# .#. #... ...# ...# ...# #..# .#.. #..# ...#
        .##. ### #### ###. ...# ###. .##. .#.. .##. .##.
        .... ... .... .... .... .... .... .... .... ....
        .... ... .... .... .... .... .... .... .... ....
    """),
    **read_sheet("""
        C    D    F    P    T     a    e    g    l m     n    o    r   t   u    y
        .### ###. #### ###. ##### .... .... .... # ..... .... .... ... .#. .... ....
        #... #..# #... #..# ..#.. .... .... .... # ..... .... .... ... .#. .... ....
        #... #..# #... #..# ..#.. .##. .##. .### # ##.#. ###. .##. #.# ### #..# #..#
        #... #..# ###. ###. ..#.. ...# #..# #..# # #.#.# #..# #..# ##. .#. #..# #..#
        #... #..# #... #... ..#.. .### #### #..# # #.#.# #..# #..# #.. .#. #..# #..#
        #... #..# #... #... ..#.. #..# #... #..# # #.#.# #..# #..# #.. .#. #..# #..#
        .### ###. #... #... ..#.. .### .### .### # #.#.# #..# .##. #.. .## .### .###
        .... .... .... .... ..... .... .... ...# . ..... .... .... ... ... .... ...#
        .... .... .... .... ..... .... .... .##. . ..... .... .... ... ... .... .##.
    """),
    **read_sheet("""
        +     -    *     /    (  )  =    :
        ..... .... ..... ...# .# #. .... .
        ..#.. .... #.#.# ...# #. .# .... .
        ..#.. .... .###. ..#. #. .# #### #
        ##### #### ##### ..#. #. .# .... .
        ..#.. .... .###. .#.. #. .# #### .
        ..#.. .... #.#.# .#.. #. .# .... #
        ..... .... ..... #... .# #. .... .
        ..... .... ..... .... .. .. .... .
        ..... .... ..... .... .. .. .... .
    """),
    " ": np.zeros((9, 2), dtype=np.bool_),
}

RANK = {
    **read_sheet("""
        0      1      2      3      4      5      6      7      8      9
        .####. ..##.. .####. .####. ....## ###### ..###. ###### .####. .####.
        ##..## .###.. ##..## ##..## ...### ###### .##... ###### ##..## ##..##
        ##..## ####.. ....## ....## ..#### ##.... ##.... ....## ##..## ##..##
        ##..## ..##.. ....## ....## .##.## ##.... ##.... ...##. ##..## ##..##
        ##..## ..##.. ...##. ..###. ##..## #####. #####. ...##. .####. .#####
        ##..## ..##.. ..##.. ..###. ##..## ...### ###.## ..##.. .####. ....##
        ##..## ..##.. .##... ....## ###### ....## ##..## ..##.. ##..## ....##
        ##..## ..##.. ##.... ....## ###### ....## ##..## .##... ##..## ....##
        ##..## ###### ###### ##..## ....## ##..## ##..## .##... ##..## ...##.
        .####. ###### ###### .####. ....## .####. .####. .##... .####. .###..
    """),
    **read_sheet("""
        10        A      J      Q      K
        .##..###. ..##.. ..#### .####. ##..##
        ###.##.## .####. ..#### ##..## ##..##
        .##.##.## .####. ....## ##..## ##.##.
        .##.##.## ##..## ....## ##..## ##.##.
        .##.##.## ##..## ....## ##..## ####..
        .##.##.## ##..## ....## ##..## ####..
        .##.##.## ###### ....## ##.### ##.##.
        .##.##.## ###### ##..## ##.### ##.##.
        .##.##.## ##..## ##..## .####. ##..##
        .##..###. ##..## .####. ....## ##..##
    """),
}

TEXT_CAPITAL_HEIGHT = 7
TEXT_HEIGHT = 9
RANK_HEIGHT = 10
RANK_WIDTH = 9
"""Width of the widest rank, 10."""

GAP = 1
"""Blank columns between glyphs, before scaling."""


def scaled(mask: Mask, scale: int) -> Mask:
    """Every pixel becomes a square of `scale` by `scale`."""
    return mask.repeat(scale, axis=0).repeat(scale, axis=1)


@lru_cache(maxsize=256)
def text_mask(text: str, scale: int) -> Mask:
    """A word or formula in the `TEXT` alphabet, read-only."""
    return _line([TEXT[character] for character in text], scale)


@lru_cache(maxsize=256)
def number_mask(number: int, scale: int) -> Mask:
    """A number in the `RANK` alphabet, read-only."""
    return _line([RANK[digit] for digit in str(number)], scale)


@lru_cache(maxsize=256)
def rank_mask(name: str, scale: int) -> Mask:
    """A card's rank, "A", "2" … "10", "J", "Q" or "K", read-only."""
    return _line([RANK[name]], scale)


def _line(glyphs: list[Mask], scale: int) -> Mask:
    gap = np.zeros((len(glyphs[0]), GAP), dtype=np.bool_)
    spaced = [part for glyph in glyphs for part in (glyph, gap)][:-1]
    line = scaled(np.concatenate(spaced, axis=1), scale)
    line.flags.writeable = False
    return line


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
"""Side of an image, pixels."""


def blank(height: int, width: int, color: Color) -> Image:
    """An image of one color, uint8 [height, width, 3]."""
    canvas = np.empty((height, width, 3), dtype=np.uint8)
    canvas[:] = color
    return canvas


def stamp(canvas: Image, mask: Mask, x: int, y: int, color: Color) -> None:
    """Colors the pixels of `mask`, its top left corner at column `x`, row `y`."""
    height, width = mask.shape
    canvas[y : y + height, x : x + width][mask] = color


def freeze(canvas: Image) -> Image:
    """Makes an image read-only, so that it may be cached and shared."""
    canvas.flags.writeable = False
    return canvas


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
"""The gap between two cards is one pixel for every so many pixels of the image's side."""


def card_gap(size: int) -> int:
    """Pixels between two cards, in an image of this side."""
    return max(1, size // CARD_GAP_SHARE)


def card_width(size: int, columns: int) -> int:
    """Width of a card where `columns` of them stand side by side in an image."""
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
