"""A collection in a few numbers, counted file by file: it may be larger than the memory."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import fsum

import numpy as np

from forethought.evaluation.statistics import Interval, bootstrap_interval, wilson_interval
from forethought.types import Trajectory

_RESAMPLES = 1000
"""A collection may have very many episodes, and this is only to be glanced at."""


@dataclass
class CollectionStats:
    """What has been counted so far."""

    files: int = 0
    steps: int = 0
    invalid: int = 0
    """Steps whose answer named no valid action."""
    successes: int = 0
    failures: int = 0
    """Episodes lost to the environment; in none of the other numbers."""
    returns: list[float] = field(default_factory=list[float])

    def add(self, trajectories: Iterable[Trajectory]) -> None:
        """Counts one file's episodes."""
        self.files += 1
        for trajectory in trajectories:
            if trajectory.failure is not None:
                self.failures += 1
                continue
            self.steps += len(trajectory.steps)
            self.invalid += sum(not step.action.is_valid for step in trajectory.steps)
            self.successes += trajectory.success
            self.returns.append(trajectory.total_reward)

    def summary(self) -> dict[str, object]:
        """For programs. Rates are null where there is no episode."""
        episodes = len(self.returns)
        return {
            "episodes": episodes,
            "failures": self.failures,
            "steps": self.steps,
            "files": self.files,
            "success_rate": self.successes / episodes if episodes else None,
            "success_interval": self.success_interval(),
            "mean_return": fsum(self.returns) / episodes if episodes else None,
            "return_interval": self.return_interval(),
            "invalid_rate": self.invalid / self.steps if self.steps else None,
        }

    def success_interval(self) -> Interval | None:
        """95 %, Wilson; None where there is no episode."""
        episodes = len(self.returns)
        return wilson_interval(self.successes, episodes) if episodes else None

    def return_interval(self) -> Interval | None:
        """95 %, bootstrap; None where there is no episode."""
        if not self.returns:
            return None
        return bootstrap_interval(self.returns, np.random.default_rng(0), resamples=_RESAMPLES)
