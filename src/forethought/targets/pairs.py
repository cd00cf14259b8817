"""Two answers to one question, of which one went better."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import product
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
        answers = _distinct(asked)
        found = [
            Pair(winner, loser)
            for winner, loser in product(answers, answers)
            if winner.score > loser.score + margin
            and winner.step.action.action != loser.step.action.action
            and not winner.step.action.was_randomised
        ]
        pairs += _furthest_apart(found, most_per_state)
    return pairs


def _furthest_apart(pairs: Sequence[Pair], most: int) -> list[Pair]:
    """Of pairs equally far apart, those whose answers are in the fewest pairs so far: lest one
    winner meet all the losers; then those that were met first."""
    remaining, chosen, uses = list(pairs), list[Pair](), Counter[int]()
    while remaining and len(chosen) < most:
        best = min(
            range(len(remaining)),
            key=lambda i: (
                -remaining[i].margin,
                uses[id(remaining[i].winner.step)] + uses[id(remaining[i].loser.step)],
            ),
        )
        pair = remaining.pop(best)
        uses.update([id(pair.winner.step), id(pair.loser.step)])
        chosen.append(pair)
    return chosen


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
