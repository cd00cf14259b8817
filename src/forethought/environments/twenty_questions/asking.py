"""Which question to ask: the expert's search, and the exact worth of playing by it."""

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forethought.environments.twenty_questions.knowledge import load_things, truth_table

MAX_QUESTIONS = 20
FEW = 3
"""Of so many objects one is guessed: a guess splits three as well as a question, and may win."""

Candidates = NDArray[np.int64]
"""Numbers of the objects of which all answers so far are true, ascending."""


@cache
def all_candidates() -> Candidates:
    """Every object; not to be written."""
    everything = np.arange(len(load_things()))
    everything.flags.writeable = False
    return everything


def good_questions(candidates: Candidates, count: int) -> tuple[int, ...]:
    """Numbers of the questions (`grammar.sentences`) that tell most, best first.

    The attributes that split the candidates most evenly, `count` at most, of equally even
    ones the first; of at most three candidates, or of some that no attribute tells apart, a
    guess of each. The expert asks the first.

    Args:
        candidates: at least one.
    """
    return _good_questions(candidates.tobytes(), count)


@lru_cache(maxsize=1 << 16)
def _good_questions(key: bytes, count: int) -> tuple[int, ...]:
    candidates = np.frombuffer(key, np.int64)
    true = truth_table()[candidates].sum(axis=0)
    smaller = np.minimum(true, len(candidates) - true)
    order = np.argsort(-smaller, kind="stable")[:count]
    splits = tuple(int(attribute) for attribute in order if smaller[attribute] > 0)
    guesses = tuple(truth_table().shape[1] + int(thing) for thing in candidates)
    return splits if splits and len(candidates) > FEW else guesses


def remaining(candidates: Candidates, question: int, answer: bool) -> Candidates:
    """The candidates of which this answer is true."""
    table = truth_table()
    attributes = table.shape[1]
    if question < attributes:
        return candidates[table[candidates, question] == answer]
    return candidates[(candidates == question - attributes) == answer]


class Worth(NamedTuple):
    """Over all hidden objects, each as likely as the others."""

    success_rate: float
    mean_return: float


@cache
def expert_worth() -> Worth:
    """The expert's success rate and mean return, exact: every hidden object is played."""
    attributes = truth_table().shape[1]
    total = len(load_things())
    wins = wrong = 0
    level = [all_candidates()]
    for _ in range(MAX_QUESTIONS):
        following: list[Candidates] = []
        for candidates in level:
            question = good_questions(candidates, 1)[0]
            is_guess = question >= attributes
            wins += is_guess
            wrong += len(candidates) - is_guess
            parts = [remaining(candidates, question, answer) for answer in (False, True)]
            following += [part for part in parts[: 1 if is_guess else 2] if len(part)]
        level = following
    return Worth(wins / total, -wrong / total)


@cache
def return_bound() -> float:
    """A mean return that no policy exceeds, whatever the attributes are.

    F(n), the fewest wrong guesses and questions summed over n objects, one of them hidden:

        F(1) = 0,   F(n) = min(n - 1 + F(n - 1), n + min over k of F(k) + F(n - k))

    a guess, which is right for one of them, or a question, which splits them in two.
    """
    fewest = [0, 0]
    for n in range(2, len(load_things()) + 1):
        split = min(fewest[k] + fewest[n - k] for k in range(1, n // 2 + 1))
        fewest.append(min(n - 1 + fewest[n - 1], n + split))
    return -fewest[-1] / (len(fewest) - 1)
