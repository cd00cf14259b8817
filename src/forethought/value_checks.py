"""What a reward, an end, an image and a text must be, wherever they come from.

The same rules hold for what an environment gives while it is played and for what is read
from a file. Each function returns what is wrong as one clause, or None.
"""

import math
import re
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

LARGEST_REWARD = 1e9
"""In size. Losses square returns in fp32, which ends at 3e38: rewards near that limit would
train on infinities, though each of them is finite."""

LARGEST_IMAGE = 1 << 24
"""Pixels: 4096 x 4096, 50 MB in memory."""

_HALF_SURROGATE = re.compile(r"[\ud800-\udfff]")


def reward_problem(reward: object) -> str | None:
    """A reward is a number of moderate size; never None, text, infinite or not a number."""
    is_number = isinstance(reward, int | float | np.integer | np.floating)
    if is_number and math.isfinite(reward) and abs(reward) <= LARGEST_REWARD:
        return None
    shown = f"{reward}" if is_number else f"{reward!r:.40}"
    return f"reward is {shown} — expected a finite number of at most {LARGEST_REWARD:g} in size"


def ends_problem(terminated: object, truncated: object) -> str | None:
    """An episode goes on, or ends in one of two ways."""
    if type(terminated) is bool and type(truncated) is bool and not (terminated and truncated):
        return None
    return (
        f"terminated is {terminated!r:.40} and truncated {truncated!r:.40} — expected two "
        "booleans, not both True"
    )


def image_problem(image: object) -> str | None:
    """An image is uint8 [height, width, 3], not empty, and small enough to be held."""
    if not isinstance(image, np.ndarray):
        return f"an image is {type(image).__name__} — expected an array, uint8 [H, W, 3]"
    image = cast(NDArray[Any], image)
    is_rgb = image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3
    if not is_rgb or not image.size:
        return (
            f"an image is {image.dtype} {list(image.shape)} — expected uint8 [H, W, 3], not empty"
        )
    return size_problem(image.shape[0], image.shape[1])


def size_problem(height: int, width: int) -> str | None:
    """The same of an image's size alone, before its pixels are in memory."""
    if height * width <= LARGEST_IMAGE:
        return None
    return (
        f"an image is {height} x {width} — expected at most {LARGEST_IMAGE} pixels "
        f"({math.isqrt(LARGEST_IMAGE)} x {math.isqrt(LARGEST_IMAGE)})"
    )


def text_problem(name: str, text: str) -> str | None:
    """A text can be encoded: it holds no half of a surrogate pair, which no tokenizer takes."""
    half = None if text.isascii() else _HALF_SURROGATE.search(text)
    if half is None:
        return None
    return (
        f"{name} holds {half[0]!r} at character {half.start()} — expected text without half "
        "surrogate pairs"
    )
