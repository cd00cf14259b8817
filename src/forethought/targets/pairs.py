"""Two responses at the same step of the same task, of which one went better: found in episodes,
or in a small tree that is grown from one state."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, merge
from itertools import chain, groupby, takewhile
from math import log, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forethought.types import Step, Trajectory

Compared = Literal["state", "start", "task_type"]
"""Which responses at the same step index may form a pair: those given in the same state; those of
episodes with the same start (seed), in whatever states; those of the same kind of task."""


class Candidate(NamedTuple):
    """A response that may become one side of a pair."""

    environment_id: str
    seed: int
    """The start of the episode: equal for episodes of one game."""
    task_type: str
    step_index: int
    """Index of the step in its episode."""
    step: Step
    """With its own prompt."""
    score: float
    """How well the episode went from this step on; in any unit, the same for all."""

    def group(self, compared: Compared) -> tuple[str, int | str, int, str]:
        """Equal for responses that may be compared: environment, task, step index and, where
        equal states are required, the state (with what the prompt includes of the past)."""
        match compared:
            case "state":
                return self.environment_id, self.task_type, self.step_index, self.step.state_key
            case "start":
                return self.environment_id, self.seed, self.step_index, ""
            case "task_type":
                return self.environment_id, self.task_type, self.step_index, ""


class Pair(NamedTuple):
    """A chosen and a rejected response, each with its own prompt (`step.prompt`)."""

    chosen: Candidate
    rejected: Candidate

    @property
    def margin(self) -> float:
        """By how much the chosen response's score is higher."""
        return self.chosen.score - self.rejected.score


def candidate_of(trajectory: Trajectory, at: int, score: float) -> Candidate:
    """The step of this index in a trajectory, with its score."""
    number, step = trajectory.first_step + at, trajectory.steps[at]
    return Candidate(
        trajectory.environment_id, trajectory.seed, trajectory.task_type, number, step, score
    )


def candidates_of(trajectory: Trajectory, scores_T: NDArray[np.float64]) -> list[Candidate]:
    """Every step of a trajectory, with its score."""
    numbers = range(len(trajectory.steps))
    return [
        candidate_of(trajectory, at, float(score))
        for at, score in zip(numbers, scores_T, strict=True)
    ]


def make_pairs(
    candidates: Iterable[Candidate],
    *,
    margin: float,
    most_per_group: int,
    compared: Compared = "state",
) -> list[Pair]:
    """Pairs of responses at the same step index of the same task.

    InteractiveCOT, Eq. 1, has the chosen response on its own prefix τ₁ and the rejected one on
    its prefix τ₂: `start` and `task_type` therefore pair any two trajectories of a task, and
    each response keeps its own prompt. `state` requires equal states as well.

    Trajectories stay apart even where their responses are equal, so that a response counts as
    often as it was given: the pairs' gradient at the reference is then a policy gradient. Within
    a `state`, a response that was given several times is one candidate, with the mean of its
    scores. The chosen score exceeds the rejected one by more than the margin, so ties make no
    pair. Two responses with the same action in the same state make none either: what follows
    differs by chance alone. A response whose action was drawn at random in its place has no
    credit for it, and is never chosen. Of the pairs of a group those that are furthest apart
    are kept; of equal ones, those whose responses are in few others.

    Args:
        candidates: any, in any order.
        margin: 0 or more, in the unit of the scores.
        most_per_group: 1 or more.
        compared: which responses form a group.

    Returns:
        Pairs, group by group in the order in which the groups were met.

    Raises:
        ValueError: a margin below 0, or fewer than one pair per group.
    """
    if not 0 <= margin < float("inf"):
        raise ValueError(f"margin: expected 0 or more, got {margin}")
    if most_per_group < 1:
        raise ValueError(f"most_per_group: expected 1 or more, got {most_per_group}")
    groups: dict[tuple[str, int | str, int, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        groups[candidate.group(compared)].append(candidate)
    pairs: list[Pair] = []
    for group in groups.values():
        members = _distinct(group) if compared == "state" else group
        pairs += _furthest_apart(members, margin, most_per_group)
    return pairs


def _furthest_apart(candidates: Sequence[Candidate], margin: float, most: int) -> list[Pair]:
    """Among pairs equally far apart, those whose responses are in the fewest pairs so far: lest one
    chosen response meet all the rejected ones; then those that were met first."""
    places = {id(candidate.step): place for place, candidate in enumerate(candidates)}
    kept, uses = list[Pair](), Counter[int]()

    def rank(pair: Pair) -> tuple[int, int, int]:
        chosen, rejected = id(pair.chosen.step), id(pair.rejected.step)
        return uses[chosen] + uses[rejected], places[chosen], places[rejected]

    for _, equals in groupby(_falling(candidates, margin, most), key=lambda pair: pair.margin):
        waiting = [(rank(pair), pair) for pair in equals]
        heapify(waiting)
        while waiting and len(kept) < most:
            known, pair = heappop(waiting)
            if rank(pair) > known:  # One of its responses was kept since.
                heappush(waiting, (rank(pair), pair))
                continue
            uses.update([id(pair.chosen.step), id(pair.rejected.step)])
            kept.append(pair)
        if len(kept) == most:
            break
    return kept


def _falling(candidates: Sequence[Candidate], margin: float, most: int) -> Iterator[Pair]:
    """The pairs that may be among so many, furthest apart first, each made when it is asked for."""
    able = [candidate for candidate in candidates if not candidate.step.action.was_randomized]
    rejected = sorted(_first_of_equals(candidates, most), key=lambda candidate: candidate.score)
    # Neighbors of one action are passed over at once by those who did the same.
    runs = [(decision, list(run)) for decision, run in groupby(rejected, key=_decision)]

    def beaten_by(chosen: Candidate) -> Iterator[Pair]:
        others = chain.from_iterable(run for decision, run in runs if decision != _decision(chosen))
        worse = takewhile(lambda rejected: chosen.score > rejected.score + margin, others)
        return (Pair(chosen, rejected) for rejected in worse)

    return merge(*map(beaten_by, _first_of_equals(able, most)), key=lambda pair: -pair.margin)


def _first_of_equals(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """Among equally good responses, those that can be in one of so many pairs.

    One that is in no pair yet goes before those that come after it, unless the other side did
    the same as it. Before the last pair fewer than `most` are in a pair; so `most` of each
    action are enough, and `most` more than can have the other side's.
    """
    kept: list[Candidate] = []
    of_score, of_decision = Counter[float](), Counter[tuple[float, tuple[str, str]]]()
    for candidate in candidates:
        score, decision = candidate.score, _decision(candidate)
        if of_score[score] < 2 * most and of_decision[score, decision] < most:
            of_score[score] += 1
            of_decision[score, decision] += 1
            kept.append(candidate)
    return kept


def _decision(candidate: Candidate) -> tuple[str, str]:
    """The state and what was done in it."""
    return candidate.step.state_key, candidate.step.action.action


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Equal responses to equal prompts become one, with the mean of their scores."""
    same: dict[tuple[tuple[str, str], str, tuple[int, ...]], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        completion = candidate.step.completion
        same[_decision(candidate), completion.text, completion.token_ids].append(candidate)
    return [
        equal[0]._replace(score=float(np.mean([candidate.score for candidate in equal])))
        for equal in same.values()
    ]


# A small tree of what may happen from one state, grown by episodes that are played to the end.


@dataclass
class Branch:
    """An action that was tried in a state, and what became of it."""

    step: Step
    """The response that tried it first."""
    gain: float
    """P_t: what this step alone is worth."""
    below: "Node"
    values: list[float] = field(default_factory=list[float])
    """S_t of every episode that passed here."""

    @property
    def mean(self) -> float:
        """What the action is worth, as far as is known."""
        return float(np.mean(self.values))


@dataclass
class Node:
    """A state, known by the actions that lead to it from the start of its episode."""

    actions: tuple[str, ...]
    progress: float = 0.0
    """Share of the goal that is met here, in environments that measure it."""
    is_terminal: bool = False
    plays: int = 0
    """Episodes that were played from here."""
    branches: dict[str, Branch] = field(default_factory=dict[str, Branch])


class SearchTree:
    """Monte-Carlo tree search whose moves and whose continuations are the policy's responses.

    One simulation: go down by the upper confidence bound (Kocsis and Szepesvári 2006, UCB1,
    on values scaled to [0, 1] within the tree), through states from which enough episodes
    were played; play one more from the first that has too few; add its first action to the
    tree; and back up what it was worth, discounted:

        S_t = P_t + γ S_t+1

    Agent Q (Putta et al. 2024) takes pairs from the siblings of such trees.
    """

    def __init__(
        self,
        trajectory: Trajectory,
        scores_T: NDArray[np.float64],
        *,
        at: int,
        prefix: tuple[str, ...],
        width: int,
        exploration: float,
        gamma: float,
    ) -> None:
        """A tree that knows one episode already.

        Args:
            trajectory: an episode that was played.
            scores_T: of its steps.
            at: the step of it whose state is the root.
            prefix: actions of the episode that lead to that state.
            width: episodes that are played from a state before its actions are gone into.
            exploration: c of UCB1; 0 always goes where it was best so far.
            gamma: γ in [0, 1], of the scores.
        """
        self.seed = trajectory.seed
        self._environment_id = trajectory.environment_id
        self._task_type = trajectory.task_type
        self._width = width
        self._exploration = exploration
        self._gamma = gamma
        before = trajectory.steps[at - 1].progress if at else None
        self._root = Node(prefix, before or 0.0)
        self._path: list[Branch] = []
        self._add(self._root, trajectory.steps[at:], scores_T[at:])

    def select(self) -> Node | None:
        """The state from which the next episode is to be played; None: every way leads to an
        end that is known."""
        node, self._path = self._root, []
        while node.plays >= self._width:
            ways = [branch for branch in node.branches.values() if self._is_open(branch.below)]
            if not ways:
                return None
            bounds = [self._bound(node, branch) for branch in ways]
            self._path.append(ways[int(np.argmax(bounds))])
            node = self._path[-1].below
        return node

    def add(self, trajectory: Trajectory, scores_T: NDArray[np.float64]) -> None:
        """The episode that was played from the state last selected; one that failed counts as
        played, and tells nothing."""
        node = self._path[-1].below if self._path else self._root
        if not trajectory.steps:
            node.plays += 1
            return
        value = self._add(node, trajectory.steps, scores_T)
        for branch in reversed(self._path):
            value = branch.gain + self._gamma * value
            branch.values.append(value)

    def candidates(self) -> list[Candidate]:
        """Every response in the tree with the mean value of its action."""
        found: list[Candidate] = []
        waiting = [self._root]
        while waiting:
            node = waiting.pop(0)
            for branch in node.branches.values():
                place = (self._environment_id, self.seed, self._task_type, len(node.actions))
                found.append(Candidate(*place, branch.step, branch.mean))
                waiting.append(branch.below)
        return found

    def _add(self, node: Node, steps: tuple[Step, ...], scores_T: NDArray[np.float64]) -> float:
        """Takes an episode's first step into the tree; gives its value."""
        step, value = steps[0], float(scores_T[0])
        following = float(scores_T[1]) if len(steps) > 1 else 0.0
        action = step.action.action
        if action not in node.branches:
            has_ended = step.terminated or step.truncated
            below = Node((*node.actions, action), step.progress or 0.0, has_ended)
            node.branches[action] = Branch(step, value - self._gamma * following, below)
        node.branches[action].values.append(value)
        node.plays += 1
        return value

    def _is_open(self, node: Node) -> bool:
        """Whether an episode can still be played from here or below."""
        if node.is_terminal:
            return False
        return node.plays < self._width or any(
            self._is_open(branch.below) for branch in node.branches.values()
        )

    def _bound(self, node: Node, branch: Branch) -> float:
        """UCB1, the values of this state's actions scaled to [0, 1]."""
        means = [other.mean for other in node.branches.values()]
        low, high = min(means), max(means)
        visits = sum(len(other.values) for other in node.branches.values())
        scaled = (branch.mean - low) / (high - low) if high > low else 0.5
        return scaled + self._exploration * sqrt(log(visits) / len(branch.values))
