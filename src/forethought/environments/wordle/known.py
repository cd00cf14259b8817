"""What marks say, in other words: of all guesses together, and letter by letter."""

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


def facts(word: str, code: int) -> str:
    """The marks of one guess as a word for each letter, "c r2 a n E5": e is in place 5, r is in the
    word and not at 2, c, a and n are not in it. Each means the same wherever it stands.

    Only how often the word has a letter is left out; no wrong guess agrees with its own facts.

    Args:
        code: of the guess's marks.
    """
    marks = [code // 3**place % 3 for place in range(LETTERS)]
    had = {letter for letter, mark in zip(word, marks, strict=True) if mark != ABSENT}
    return " ".join(
        f"{letter.upper()}{place}"
        if mark == IN_PLACE
        else f"{letter}{place}"
        if letter in had
        else letter
        for place, (letter, mark) in enumerate(zip(word, marks, strict=True), 1)
    )
