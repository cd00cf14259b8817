"""Our own pixel letters, drawn as rows of characters and scaled by whole numbers.

Two alphabets. `TEXT` is for words and formulas: capitals and digits are 7 pixels
high, two more rows hold the tails of g and y, widths are proportional. `RANK` is
for what must be read at a glance — card ranks and the numbers of NumberLine: 10
pixels high with strokes two pixels wide, and one narrow glyph for the rank 10.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

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
"""Of the widest rank, 10."""

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
