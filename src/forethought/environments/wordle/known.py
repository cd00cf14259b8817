"""What the marks of all guesses say together, as one line: two ways to write it."""

from collections.abc import Iterable

from forethought.environments.wordle.marks import ABSENT, IN_PLACE
from forethought.environments.wordle.words import LETTERS

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
    told = [
        f"{title} {' '.join(sorted(letters))}"
        for title, letters in (("not", absent - present), ("has", present - set(places)))
        if letters
    ]
    return ", ".join((*told, f"now {' '.join(places)}"))


def facts(guesses: Iterable[tuple[str, int]]) -> str:
    """ "E5 r2 c n": e is in place 5, r is in the word and not at 2, c and n are not in it: what is
    in its place first, place by place, then the rest by letter.

    Each fact is one word that means the same wherever it stands. Only how often the word has a
    letter is left out; no wrong guess agrees with what is told.

    Args:
        guesses: words, and the `code` of their marks.
    """
    in_place: set[tuple[int, str]] = set()
    elsewhere: set[tuple[str, int]] = set()
    absent: set[str] = set()
    for word, code in guesses:
        marks = [code // 3**place % 3 for place in range(LETTERS)]
        had = {letter for letter, mark in zip(word, marks, strict=True) if mark != ABSENT}
        for place, (letter, mark) in enumerate(zip(word, marks, strict=True), 1):
            if mark == IN_PLACE:
                in_place.add((place, letter))
            elif letter in had:
                elsewhere.add((letter, place))
            else:
                absent.add(letter)
    return " ".join(
        (
            *(f"{letter.upper()}{place}" for place, letter in sorted(in_place)),
            *(f"{letter}{place}" for letter, place in sorted(elsewhere)),
            *sorted(absent),
        )
    )
