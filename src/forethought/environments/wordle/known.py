"""What the marks of all guesses say together, as one line."""

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
