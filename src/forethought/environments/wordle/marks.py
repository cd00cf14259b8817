"""What a guess reveals: one mark per letter."""

from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

import numpy as np
from numpy.typing import NDArray

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


Rules = Literal["official", "reference"]

ABSENT, ELSEWHERE, IN_PLACE = range(3)
SIGNS = "byg"
"""As they are shown: black, not in the word; yellow, elsewhere in it; green, in its place."""

ALL_IN_PLACE = 3**LETTERS - 1
CODES = 3**LETTERS


def mark(guess: str, hidden: str, rules: Rules) -> tuple[int, ...]:
    """The marks of a guess, letter by letter.

    official: a letter is marked as often as the hidden word has it, in its place first,
    then from left to right. reference: duplicates are ignored, every misplaced letter that
    the hidden word has anywhere is `ELSEWHERE`.
    """
    marks = [IN_PLACE if g == h else ABSENT for g, h in zip(guess, hidden, strict=True)]
    left = [h for g, h in zip(guess, hidden, strict=True) if g != h]
    for place, letter in enumerate(guess):
        if marks[place] == IN_PLACE:
            continue
        if rules == "reference":
            marks[place] = ELSEWHERE if letter in hidden else ABSENT
        elif letter in left:
            left.remove(letter)
            marks[place] = ELSEWHERE
    return tuple(marks)


def code(marks: tuple[int, ...]) -> int:
    """The marks as one number from 0 to 242, the first letter's counting least."""
    return sum(m * 3**place for place, m in enumerate(marks))


@lru_cache(maxsize=CODES)
def shown(code: int) -> str:
    """The signs alone, letter by letter: "b y b b g". They stand as the guess does, so that what
    a model looks for lies equally far back for every letter."""
    return " ".join(SIGNS[code // 3**place % 3] for place in range(LETTERS))


@cache
def mark_table(words: WordList, rules: Rules) -> NDArray[np.uint8]:
    """`code(mark(guess, hidden))` for every pair of words, [guess, hidden]; not to be written."""
    letters_WL = np.array([[ord(letter) for letter in word] for word in load_words(words)])
    guess, hidden = letters_WL[:, None, :], letters_WL[None, :, :]
    in_place = guess == hidden  # [guess, hidden, place]
    table = np.zeros(in_place.shape[:2], np.uint8)
    for place in range(LETTERS):
        letter = guess[:, :, place, None]
        if rules == "reference":
            elsewhere = (hidden == letter).any(axis=2)
        else:
            left = ((hidden == letter) & ~in_place).sum(axis=2)
            before = (guess == letter) & ~in_place
            elsewhere = before[:, :, :place].sum(axis=2) < left
        marks = np.where(in_place[:, :, place], IN_PLACE, np.where(elsewhere, ELSEWHERE, ABSENT))
        table += (marks * 3**place).astype(np.uint8)
    table.flags.writeable = False
    return table


ANY = "any"
"""A place whose letter is not known: a word, as letters are, so that places stay apart for
every tokenizer."""


def known(guesses: Iterable[tuple[str, int]]) -> str:
    """ "not c n, has r, now any any a any e": letters that the word does not have, letters that it
    has at a place not yet known, and the letter of each place.

    The places come last: what belongs into a place then lies equally far back for every letter
    of the next guess. It says less than the marks do: a letter's wrong places, and how often the
    word has it, are left out.

    Args:
        guesses: words, and the `code` of their marks.
    """
    places = [ANY] * LETTERS
    absent: set[str] = set()
    present: set[str] = set()
    for word, code in guesses:
        for place, letter in enumerate(word):
            mark = code // 3**place % 3
            if mark == IN_PLACE:
                places[place] = letter
            (absent if mark == ABSENT else present).add(letter)
    parts = [
        f"{title} {' '.join(sorted(letters))}"
        for title, letters in (("not", absent - present), ("has", present - set(places)))
        if letters
    ]
    return ", ".join((*parts, f"now {' '.join(places)}"))
