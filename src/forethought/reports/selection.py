"""Which episodes a report replays: as many failures as successes, and always the same ones."""

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
    failures: int
    """Among all finished episodes."""
    successes: int
    lost: int
    """Episodes that the world did not bring to an end; none of them is shown."""
    unfinished: int
    """Shown only where no episode is finished."""


def select_episodes(trajectories: Sequence[Trajectory], most: int = MOST_EPISODES) -> Selection:
    """Half failures, half successes, spread evenly over all; one kind fills up for the other."""
    numbered = [Selected(number, t) for number, t in enumerate(trajectories, start=1)]
    played = [s for s in numbered if s.trajectory.failure is None and s.trajectory.steps]
    finished = [s for s in played if s.trajectory.is_finished]
    unfinished = [s for s in played if not s.trajectory.is_finished]
    failures = [s for s in finished if not s.trajectory.success]
    successes = [s for s in finished if s.trajectory.success]
    if finished:
        n_failures = min(len(failures), max(most - most // 2, most - len(successes)))
        chosen = _spread(failures, n_failures) + _spread(successes, most - n_failures)
    else:
        chosen = _spread(unfinished, most)
    return Selection(
        episodes=sorted(chosen, key=lambda selected: selected.number),
        failures=len(failures),
        successes=len(successes),
        lost=len(numbered) - len(played),
        unfinished=len(unfinished),
    )


def _spread(items: Sequence[T], most: int) -> list[T]:
    """At most so many of the items, evenly spaced, the first one included."""
    n = min(most, len(items))
    return [items[index * len(items) // n] for index in range(n)]
