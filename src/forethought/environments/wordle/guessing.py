"""Which word to guess: the expert's search, and the exact worth of playing by it."""

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forethought.environments.wordle.marks import ALL_IN_PLACE, CODES, Rules, mark_table
from forethought.environments.wordle.words import WordList, load_words

MAX_GUESSES = 6

Candidates = NDArray[np.int64]
"""Numbers of the words that agree with all marks so far, ascending."""


@cache
def all_candidates(words: WordList) -> Candidates:
    """Every word of the list; not to be written."""
    everything = np.arange(len(load_words(words)))
    everything.flags.writeable = False
    return everything


def consistent(
    candidates: Candidates, guess: int, code: int, words: WordList, rules: Rules
) -> Candidates:
    """Those that would have given the guess these marks."""
    return candidates[mark_table(words, rules)[guess, candidates] == code]


def best_guess(candidates: Candidates, words: WordList, rules: Rules) -> int:
    """The word whose marks tell most about the hidden word, every candidate being as likely.

        argmax over guesses g of H(g) = -Σ_m p(m | g) log p(m | g)

    Of words that tell equally much, a candidate first, then the first of the list. Of at
    most two candidates, the first.

    Args:
        candidates: at least one.
    """
    return _best_guess(candidates.tobytes(), words, rules)


@lru_cache(maxsize=1 << 16)
def _best_guess(key: bytes, words: WordList, rules: Rules) -> int:
    candidates = np.frombuffer(key, np.int64)
    if len(candidates) <= 2:
        return int(candidates[0])
    codes = mark_table(words, rules)[:, candidates].astype(np.int64)
    n = len(codes)
    cells = (codes + CODES * np.arange(n)[:, None]).ravel()
    counts = np.bincount(cells, minlength=CODES * n).reshape(n, CODES)
    # Σ p log p = Σ c log c / n - log n: the number of candidates is the same for all guesses.
    surprise = _C_LOG_C[counts].sum(axis=1)
    surprise[candidates] -= 1e-9
    return int(np.argmin(surprise))


_COUNTS = np.arange(1, 1 << 12, dtype=np.float64)  # no list is longer
_C_LOG_C = np.concatenate([[0.0], _COUNTS * np.log(_COUNTS)])


class Worth(NamedTuple):
    """Over all hidden words, each as likely as the others."""

    success_rate: float
    mean_return: float


@cache
def expert_worth(words: WordList, rules: Rules) -> Worth:
    """The expert's success rate and mean return, exact: every hidden word is played."""
    table = mark_table(words, rules)
    total, wins = len(table), 0
    guesses = 0  # wrong ones, over all hidden words
    level = [all_candidates(words)]
    for _ in range(MAX_GUESSES):
        following: list[Candidates] = []
        for candidates in level:
            guess = best_guess(candidates, words, rules)
            codes = table[guess, candidates]
            right = int((codes == ALL_IN_PLACE).sum())
            wins += right
            guesses += len(candidates) - right
            groups = (candidates[codes == code] for code in np.unique(codes))
            following += [group for group in groups if table[guess, group[0]] != ALL_IN_PLACE]
        level = following
    return Worth(wins / total, -guesses / total)


@cache
def return_bound(words: WordList, rules: Rules) -> float:
    """A mean return that no policy exceeds.

    One hidden word at most is found at the first guess. If the first guess has K different
    answers, at most K - 1 words are found at the second, one for each answer but "right".
    """
    table = mark_table(words, rules)
    total = len(table)
    answers = max(len(np.unique(row)) for row in table)
    second = answers - 1
    return -(second + 2 * (total - 1 - second)) / total
