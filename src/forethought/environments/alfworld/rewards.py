"""What a step of ALFWorld pays, in parts that are logged apart."""

from dataclasses import dataclass
from typing import Literal

Reward = Literal["paper", "reference"]

GOAL_REWARD = 50.0
INADMISSIBLE_PENALTY = 1.0


@dataclass
class Purse:
    """An episode's reward so far, by part.

    `paper` (RL4VLM, B.2): 50 · 1{goal reached} + 1 for each condition of the goal that is
    met for the first time - 1{inadmissible}. `reference` (its public code): the share of the
    conditions that are met, again at every step, in place of the second term.
    """

    rule: Reward
    conditions: int
    """How many the goal has."""
    most_met: int = 0
    """The most that were met at one time, the start included."""
    goal: float = 0.0
    progress: float = 0.0
    penalty: float = 0.0

    def pay(self, *, met: int, won: bool, admissible: bool) -> float:
        """The reward of one step.

        Args:
            met: conditions that hold after it.
        """
        goal = GOAL_REWARD if won else 0.0
        gained = max(met - self.most_met, 0)
        progress = float(gained) if self.rule == "paper" else met / self.conditions
        penalty = 0.0 if admissible else INADMISSIBLE_PENALTY
        self.most_met += gained
        self.goal += goal
        self.progress += progress
        self.penalty += penalty
        return goal + progress - penalty
