"""Environments whose transition table is open (`P`: FrozenLake, Taxi, CliffWalking): their words,
their expert, and their ceiling by dynamic programming."""

import json
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forethought.environments.contract import Ceiling, ExpertAction
from forethought.environments.gym.knowledge import GymEnv

DISCOUNT = 0.999
"""Of the expert: it prefers the most probable success, and of equally probable ones the soonest."""
SWEEPS = 20_000
Floats = NDArray[np.float64]


class Layout(NamedTuple):
    """How a known environment is told."""

    actions: tuple[str, ...]
    goal: str
    wins_by_ending: bool


LAYOUTS = {
    "FrozenLakeEnv": Layout(
        ("left", "down", "right", "up"),
        "Walk over the ice (F) to the goal (G); do not fall into a hole (H). P is where you are.",
        False,
    ),
    "CliffWalkingEnv": Layout(
        ("up", "right", "down", "left"),
        "Walk from the lower left to the lower right corner; the cells between are a cliff.",
        True,
    ),
    "TaxiEnv": Layout(
        ("south", "north", "east", "west", "pickup", "dropoff"),
        "Fetch the passenger, and drop them off at the destination.",
        True,
    ),
}


def has_table(environment: GymEnv) -> bool:
    """Whether the environment is one of those whose table and words are known here."""
    inner = environment.unwrapped
    is_fickle = bool(getattr(inner, "fickle_passenger", False))
    return type(inner).__name__ in LAYOUTS and hasattr(inner, "P") and not is_fickle


class Table(NamedTuple):
    """Transitions, [state, action, outcome]."""

    probability: Floats
    next_state: NDArray[np.int64]
    succeeds: Floats
    """1 where the outcome ends the episode in success."""
    goes_on: Floats

    def values(self, following: Floats) -> Floats:
        """[state, action]: probability of success, where `following` is that of each state."""
        return (self.probability * (self.succeeds + self.goes_on * following[self.next_state])).sum(
            -1
        )


class TableKnowledge:
    """Of one instance of such an environment."""

    has_expert: bool = True
    fields: tuple[str, ...] = ("thoughts",)

    def __init__(self, environment: GymEnv, actions: tuple[str, ...] | None = None) -> None:
        self._inner: Any = environment.unwrapped
        layout = LAYOUTS[type(self._inner).__name__]
        self.actions = actions or layout.actions
        self.goal, self.wins_by_ending = layout.goal, layout.wins_by_ending
        self._table = read_table(self._inner.P, self.wins_by_ending)
        self._best = best_actions(self._table)

    def ceiling(self, limit_steps: int) -> Ceiling:
        best = np.zeros(len(self._table.probability))
        for _ in range(limit_steps):
            best = self._table.values(best).max(1)
        rate = float(np.asarray(self._inner.initial_state_distrib) @ best)
        method = f"exact: dynamic programming over all states and {limit_steps} steps"
        return Ceiling(min(rate, 1.0), method)

    def words(self, observation: Any) -> str:
        place = self._place(int(observation))
        kind = type(self._inner).__name__
        if kind == "FrozenLakeEnv":
            rows = [[cell.decode() for cell in row] for row in self._inner.desc]
            rows[place[0]][place[1]] = "P"
            return "\n".join([f"at {place[0]} {place[1]}", *map(" ".join, rows)])
        if kind == "CliffWalkingEnv":
            return f"at row {place[0]} column {place[1]} of 4 rows and 12 columns"
        names = [
            f"{letter} {row} {column}"
            for letter, (row, column) in zip("RGYB", self._inner.locs, strict=True)
        ]
        _, _, passenger, destination = place
        where = "in the taxi" if passenger == len(names) else f"at {names[passenger]}"
        return f"taxi at {place[0]} {place[1]}. passenger {where}. destination {names[destination]}"

    def state(self) -> str:
        return f"{int(self._inner.s)} {getattr(self._inner, 'lastaction', None)}"

    def begin(self) -> None: ...

    def acted(self, action: int) -> None: ...

    def expert(self, observation: Any) -> ExpertAction:
        state = int(observation)
        action = self.actions[int(self._best[state])]
        place = self._place(state)
        thought = f"I am at {place[0]} {place[1]}{self._aim(place)}, so I go {action}"
        if action in ("pickup", "dropoff"):
            thought = f"I am at {place[0]} {place[1]}{self._aim(place)}, so I {action}"
        return ExpertAction(action, (("thoughts", json.dumps(thought)),))

    def _place(self, state: int) -> tuple[int, ...]:
        """Row and column; in Taxi also the places of passenger and destination."""
        if type(self._inner).__name__ == "TaxiEnv":
            return tuple(int(part) for part in self._inner.decode(state))
        columns = 12 if type(self._inner).__name__ == "CliffWalkingEnv" else self._inner.ncol
        return divmod(state, columns)

    def _aim(self, place: tuple[int, ...]) -> str:
        if type(self._inner).__name__ != "TaxiEnv":
            return ""
        has_passenger = place[2] == len(self._inner.locs)
        row, column = self._inner.locs[place[3] if has_passenger else place[2]]
        return f", the {'destination' if has_passenger else 'passenger'} is at {row} {column}"


def read_table(transitions: dict[int, dict[int, list[Any]]], wins_by_ending: bool) -> Table:
    """Gymnasium's `P` as arrays, outcomes padded with probability 0."""
    most = max(len(row) for actions in transitions.values() for row in actions.values())
    shape = (len(transitions), len(transitions[0]), most)
    probability, succeeds, goes_on = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    next_state = np.zeros(shape, dtype=np.int64)
    for state, actions in transitions.items():
        for action, outcomes in actions.items():
            for index, (chance, following, reward, done) in enumerate(outcomes):
                where = (state, action, index)
                probability[where], next_state[where] = chance, following
                succeeds[where] = bool(done) and (wins_by_ending or reward > 0)
                goes_on[where] = not done
    return Table(probability, next_state, succeeds, goes_on)


def best_actions(table: Table) -> NDArray[np.int64]:
    """The action of each state that leads most probably, and soonest, to success."""
    key = b"".join(part.tobytes() for part in table)
    return _best_actions(_Keyed(key, table))


class _Keyed:
    """A table that a cache can hold: equal where its numbers are."""

    def __init__(self, key: bytes, table: Table) -> None:
        self.key, self.table = key, table

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and self.key == other.key


@lru_cache(maxsize=64)
def _best_actions(keyed: _Keyed) -> NDArray[np.int64]:
    table, best = keyed.table, np.zeros(len(keyed.table.probability))
    for _ in range(SWEEPS):
        after = DISCOUNT * table.values(best).max(1)
        if np.abs(after - best).max() < 1e-12:
            break
        best = after
    # Rounding must not decide between equals: the first of those that are as good.
    return np.argmax(np.round(table.values(best), 9), axis=1)
