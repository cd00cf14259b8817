"""The word lists. Their source and license stand in `words_license.txt`."""

from functools import cache
from importlib.resources import files
from typing import Literal

LETTERS = 5

WordList = Literal["small", "large"]


@cache
def load_words(name: WordList) -> tuple[str, ...]:
    """Every word that may be hidden or guessed, in alphabetical order.

    small: 412 common words; large: 754, those of small included.
    """
    folder = files("forethought.environments.wordle")
    return tuple((folder / f"words_{name}.txt").read_text(encoding="ascii").split())


def spelled(word: str) -> str:
    """The letters apart, "c r a n e": one token each for every tokenizer."""
    return " ".join(word)
