"""A picture in a terminal: every character shows two pixels, one above the other."""

import numpy as np
from numpy.typing import NDArray

from forethought.types import Image

_UPPER_HALF = "▀"
_RESET = "\x1b[0m"


def half_blocks(image: Image, columns: int) -> list[str]:
    """Lines of colored half blocks (24-bit ANSI): the foreground is the upper pixel, the
    background the lower one, so that a character is about as wide as it is high.

    Args:
        columns: width in characters; smaller pictures keep their own width.
    """
    width = min(columns, image.shape[1])
    height = max(1, round(image.shape[0] * width / image.shape[1]))
    pixels = shrink(image, height + height % 2, width)
    return [_line(upper, lower) for upper, lower in zip(pixels[::2], pixels[1::2], strict=True)]


def shrink(image: Image, height: int, width: int) -> Image:
    """Every new pixel is the mean of the old ones that it covers."""
    rows = _shares(image.shape[0], height)
    columns = _shares(image.shape[1], width)
    mean = np.einsum("ih,hwc,jw->ijc", rows, image.astype(np.float64), columns, optimize=True)
    return np.rint(mean).astype(np.uint8)


def _shares(old: int, new: int) -> NDArray[np.float64]:
    """How much each old pixel counts in each new one [new, old]; every row adds up to 1."""
    edges = np.linspace(0, old, new + 1)
    starts, stops = edges[:-1, None], edges[1:, None]
    pixels = np.arange(old)
    overlap = np.minimum(stops, pixels + 1) - np.maximum(starts, pixels)
    shares = np.clip(overlap, 0, None)
    return shares / shares.sum(axis=1, keepdims=True)


def _line(upper: Image, lower: Image) -> str:
    parts: list[str] = []
    before: tuple[int, ...] = ()
    for above, below in zip(upper.tolist(), lower.tolist(), strict=True):
        colors = (*above, *below)
        if colors != before:  # Most neighbors are equal: terminals are slow readers.
            red, green, blue, red_below, green_below, blue_below = colors
            parts.append(
                f"\x1b[38;2;{red};{green};{blue};48;2;{red_below};{green_below};{blue_below}m"
            )
            before = colors
        parts.append(_UPPER_HALF)
    return "".join([*parts, _RESET])
