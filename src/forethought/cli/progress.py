"""Progress bars: on stderr, so that stdout holds results alone."""

import sys
from collections.abc import Callable
from typing import NoReturn

from tqdm import tqdm


def progress_bar(
    description: str, total: int | None, unit: str, *, done: int = 0
) -> "tqdm[NoReturn]":
    """A bar that is advanced by `update`; in a file instead of a terminal, a line now and then.

    Args:
        total: None where that is not known.
        done: how many there are already.
    """
    interval_s = 0.2 if sys.stderr.isatty() else 20.0
    return tqdm(total=total, initial=done, desc=description, unit=unit, mininterval=interval_s)


def episodes_bar(description: str) -> Callable[[int], "tqdm[NoReturn]"]:
    """What opens a bar for a number of episodes."""
    return lambda episodes: progress_bar(description, episodes, "episode")
