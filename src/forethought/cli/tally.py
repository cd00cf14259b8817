"""A collection in a few numbers, counted file by file: it may be larger than the memory."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import fsum

import numpy as np

from forethought.cli.tables import number, percent
from forethought.evaluation.statistics import Interval, bootstrap_interval, wilson_interval
from forethought.types import Trajectory

_RESAMPLES = 1000
"""A collection may have very many episodes, and this is only to be glanced at."""


@dataclass
class Tally:
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
            "success_interval": self._success_interval(),
            "mean_return": fsum(self.returns) / episodes if episodes else None,
            "return_interval": self._return_interval(),
            "invalid_rate": self.invalid / self.steps if self.steps else None,
        }

    def in_words(self) -> str:
        """For persons."""
        episodes = len(self.returns)
        if not episodes:
            return f"no episode could be played to its end ({self.failures} failed)"
        rate = percent(self.successes / episodes, self._success_interval())
        mean = number(fsum(self.returns) / episodes, self._return_interval())
        invalid = percent(self.invalid / self.steps)
        failed = f", {self.failures} failed" if self.failures else ""
        return (
            f"{episodes:,} episodes{failed}, {self.steps:,} steps; "
            f"success {rate}, return {mean}, invalid answers {invalid}"
        )

    def _success_interval(self) -> Interval | None:
        episodes = len(self.returns)
        return wilson_interval(self.successes, episodes) if episodes else None

    def _return_interval(self) -> Interval | None:
        if not self.returns:
            return None
        return bootstrap_interval(self.returns, np.random.default_rng(0), resamples=_RESAMPLES)
