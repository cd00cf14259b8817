"""What the marks of all guesses say together, as one line."""

from collections.abc import Iterable

from forethought.environments.wordle.marks import ABSENT, IN_PLACE
from forethought.environments.wordle.words import LETTERS

ANY = "any"
"""A place whose letter is not known: a word, as letters are, so that places stay apart for
every tokenizer."""


def known(guesses: Iterable[tuple[str, int]]) -> str:
    """ "not c n, has r, misplaced e1 r3, now any any a any e": letters that the word does not have,
    letters that it has at a place not yet known, places at which a letter that it has is not, and
    the letter of each place.

    No wrong guess agrees with it. It says less than the marks do in one thing: how often the word
    has a letter is left out. The places come last: what belongs into a place then lies equally far
    back for every letter of the next guess.

    Args:
        guesses: words, and the `code` of their marks.
    """
    places = [ANY] * LETTERS
    absent: set[str] = set()
    present: set[str] = set()
    elsewhere: set[tuple[str, int]] = set()
    for word, code in guesses:
        for place, letter in enumerate(word):
            mark = code // 3**place % 3
            if mark == IN_PLACE:
                places[place] = letter
            else:
                elsewhere.add((letter, place + 1))
            (absent if mark == ABSENT else present).add(letter)
    told = [
        ("not", absent - present),
        ("has", present - set(places)),
        ("misplaced", {f"{letter}{place}" for letter, place in elsewhere if letter in present}),
    ]
    said = [f"{title} {' '.join(sorted(those))}" for title, those in told if those]
    return ", ".join((*said, f"now {' '.join(places)}"))
