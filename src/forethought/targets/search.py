"""A small tree of what may happen from one state, grown by episodes that are played to the end."""

from dataclasses import dataclass, field
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from forethought.targets.pairs import Candidate
from forethought.types import Step, Trajectory


@dataclass
class Branch:
    """An action that was tried in a state, and what became of it."""

    step: Step
    """The answer that tried it first."""
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
    """Share of the goal that is met here, in worlds that measure it."""
    is_terminal: bool = False
    plays: int = 0
    """Episodes that were played from here."""
    branches: dict[str, Branch] = field(default_factory=dict[str, Branch])


class SearchTree:
    """Monte-Carlo tree search whose moves and whose continuations are the policy's answers.

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
        """Every answer in the tree with the mean value of its action."""
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
