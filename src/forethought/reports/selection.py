"""Which episodes a report replays, and which one it opens on: always the same ones."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from forethought.types import Trajectory

T = TypeVar("T")

MOST_EPISODES = 12


class Selected(NamedTuple):
    """An episode, and its place among all that were played."""

    number: int
    """From 1."""
    trajectory: Trajectory


class Selection(NamedTuple):
    """What is shown, and how much more there is."""

    episodes: list[Selected]
    """In the order in which they were played."""
    opening: int
    """Index in `episodes` of the first failure; where there is none, of the longest success."""
    failures: int
    """Among all finished episodes."""
    successes: int
    lost: int
    """Episodes that the environment did not bring to an end; none of them is shown."""
    unfinished: int
    """Shown only where no episode is finished."""

    @property
    def opening_rule(self) -> str:
        """Why the page opens on this episode, as a sentence; empty where there is no choice."""
        if self.failures:
            return "The replay opens on the first failure."
        if self.successes:
            return "No episode failed: the replay opens on the longest success."
        return ""


def select_episodes(trajectories: Sequence[Trajectory], most: int = MOST_EPISODES) -> Selection:
    """Half failures, half successes, spread evenly over all; one kind fills up for the other."""
    numbered = [Selected(number, t) for number, t in enumerate(trajectories, start=1)]
    played = [s for s in numbered if s.trajectory.failure is None and s.trajectory.steps]
    finished = [s for s in played if s.trajectory.is_finished]
    unfinished = [s for s in played if not s.trajectory.is_finished]
    failures = [s for s in finished if not s.trajectory.success]
    successes = [s for s in finished if s.trajectory.success]
    longest = max(successes, key=lambda s: len(s.trajectory.steps), default=None)
    if finished:
        n_failures = min(len(failures), max(most - most // 2, most - len(successes)))
        chosen = _spread(failures, n_failures) + _spread(successes, most - n_failures, longest)
    else:
        chosen = _spread(unfinished, most)
    episodes = sorted(chosen, key=lambda selected: selected.number)
    opening = failures[0] if failures else longest
    return Selection(
        episodes=episodes,
        opening=0 if opening is None else episodes.index(opening),
        failures=len(failures),
        successes=len(successes),
        lost=len(numbered) - len(played),
        unfinished=len(unfinished),
    )


def _spread(items: Sequence[T], most: int, required: T | None = None) -> list[T]:
    """At most so many of the items, evenly spaced, the first one and the required one included."""
    n = min(most, len(items))
    chosen = [items[index * len(items) // n] for index in range(n)]
    if required is not None and chosen and required not in chosen:
        chosen[-1] = required
    return chosen
