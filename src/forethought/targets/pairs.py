"""Two answers to one question, of which one went better."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, merge
from itertools import chain, groupby, takewhile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forethought.types import Step, Trajectory


class Candidate(NamedTuple):
    """An answer that may become one side of a pair."""

    environment_id: str
    task_type: str
    step_index: int
    """Of the step in its episode."""
    step: Step
    score: float
    """How well the episode went from this step on; in any unit, the same for all."""

    @property
    def question(self) -> tuple[str, str, int, str]:
        """Equal for answers that may be compared: world, kind of task, time, state (with what
        the prompt tells of the past, where it does)."""
        return self.environment_id, self.task_type, self.step_index, self.step.state_key


class Pair(NamedTuple):
    """Answers to one question."""

    winner: Candidate
    loser: Candidate

    @property
    def margin(self) -> float:
        """By how much the winner's score is higher."""
        return self.winner.score - self.loser.score


def candidate_of(trajectory: Trajectory, at: int, score: float) -> Candidate:
    """The step of this index in a trajectory, with its score."""
    number, step = trajectory.first_step + at, trajectory.steps[at]
    return Candidate(trajectory.environment_id, trajectory.task_type, number, step, score)


def candidates_of(trajectory: Trajectory, scores_T: NDArray[np.float64]) -> list[Candidate]:
    """Every step of a trajectory, with its score."""
    numbers = range(len(trajectory.steps))
    return [
        candidate_of(trajectory, at, float(score))
        for at, score in zip(numbers, scores_T, strict=True)
    ]


def make_pairs(
    candidates: Iterable[Candidate], *, margin: float, most_per_state: int
) -> list[Pair]:
    """Pairs of answers given in the same state at the same step, with different actions.

    An answer that was given several times is one candidate, with the mean of its scores. A
    winner's score exceeds the loser's by more than the margin, so ties make no pair. An answer
    whose action was drawn at random in its place has no credit for it, and never wins. Of the
    pairs of a state those that are furthest apart are kept;
    of equal ones, those whose answers are in few others.

    Args:
        candidates: any, in any order.
        margin: 0 or more, in the unit of the scores.
        most_per_state: 1 or more.

    Returns:
        Pairs, state by state in the order in which the states were met.

    Raises:
        ValueError: a margin below 0, or fewer than one pair per state.
    """
    if not 0 <= margin < float("inf"):
        raise ValueError(f"margin: expected 0 or more, got {margin}")
    if most_per_state < 1:
        raise ValueError(f"most_per_state: expected 1 or more, got {most_per_state}")
    by_question: dict[tuple[str, str, int, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_question[candidate.question].append(candidate)
    pairs: list[Pair] = []
    for asked in by_question.values():
        pairs += _furthest_apart(_distinct(asked), margin, most_per_state)
    return pairs


def _furthest_apart(answers: Sequence[Candidate], margin: float, most: int) -> list[Pair]:
    """Of pairs equally far apart, those whose answers are in the fewest pairs so far: lest one
    winner meet all the losers; then those that were met first."""
    places = {id(answer.step): place for place, answer in enumerate(answers)}
    chosen, uses = list[Pair](), Counter[int]()

    def rank(pair: Pair) -> tuple[int, int, int]:
        winner, loser = id(pair.winner.step), id(pair.loser.step)
        return uses[winner] + uses[loser], places[winner], places[loser]

    for _, equals in groupby(_falling(answers, margin, most), key=lambda pair: pair.margin):
        waiting = [(rank(pair), pair) for pair in equals]
        heapify(waiting)
        while waiting and len(chosen) < most:
            known, pair = heappop(waiting)
            if rank(pair) > known:  # One of its answers was chosen since.
                heappush(waiting, (rank(pair), pair))
                continue
            uses.update([id(pair.winner.step), id(pair.loser.step)])
            chosen.append(pair)
        if len(chosen) == most:
            break
    return chosen


def _falling(answers: Sequence[Candidate], margin: float, most: int) -> Iterator[Pair]:
    """The pairs that may be among so many, furthest apart first, each made when it is asked for."""
    able = [answer for answer in answers if not answer.step.action.was_randomised]
    losers = sorted(_first_of_equals(answers, most), key=lambda answer: answer.score)
    # Neighbours of one action are passed over at once by those who did the same.
    runs = [(action, list(run)) for action, run in groupby(losers, key=_action)]

    def beaten_by(winner: Candidate) -> Iterator[Pair]:
        others = chain.from_iterable(run for action, run in runs if action != _action(winner))
        worse = takewhile(lambda loser: winner.score > loser.score + margin, others)
        return (Pair(winner, loser) for loser in worse)

    return merge(*map(beaten_by, _first_of_equals(able, most)), key=lambda pair: -pair.margin)


def _first_of_equals(answers: Sequence[Candidate], most: int) -> list[Candidate]:
    """Of equally good answers, those that can be in one of so many pairs.

    One that is in no pair yet goes before those that come after it, unless the other side did
    the same as it. Before the last pair fewer than `most` are in a pair; so `most` of each
    action are enough, and `most` more than can have the other side's.
    """
    kept: list[Candidate] = []
    of_score, of_action = Counter[float](), Counter[tuple[float, str]]()
    for answer in answers:
        score, action = answer.score, _action(answer)
        if of_score[score] < 2 * most and of_action[score, action] < most:
            of_score[score] += 1
            of_action[score, action] += 1
            kept.append(answer)
    return kept


def _action(answer: Candidate) -> str:
    return answer.step.action.action


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Equal answers become one, with the mean of their scores."""
    same: dict[tuple[str, tuple[int, ...], str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        step = candidate.step
        answer = (step.completion.text, step.completion.token_ids, step.action.action)
        same[answer].append(candidate)
    return [
        equal[0]._replace(score=float(np.mean([candidate.score for candidate in equal])))
        for equal in same.values()
    ]
