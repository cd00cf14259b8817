"""Knowledge of a Gymnasium environment beyond its spaces: words, an expert, a ceiling.

`SpacesAlone` knows nothing more; `TableKnowledge` reads an open transition table (`P`: FrozenLake,
Taxi, CliffWalking); grids have a file of their own.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium import Env, spaces
from numpy.typing import NDArray

from forethought.environments.contract import Ceiling, ExpertAction
from forethought.environments.gym.calling import brief
from forethought.environments.gym.words import in_words
from forethought.environments.parts import is_whole_number
from forethought.errors import ConfigError

MOST_ACTIONS = 1_000
"""A prompt lists them all."""

GymEnv = Env[Any, Any]


class Knowledge(Protocol):
    """Knowledge of one instance. Privileged: the state is read where it helps."""

    actions: tuple[str, ...]
    goal: str
    """Where the observation has no mission."""
    fields: tuple[str, ...]
    """JSON fields of the expert's response, before the action."""
    wins_by_ending: bool
    """Whether an episode that terminates is a success, whatever it paid."""
    has_expert: bool
    knows_state: bool
    """Whether words and `state` together are all of the state."""

    def ceiling(self, limit_steps: int) -> Ceiling | None:
        """The best success rate within so many steps; None where it is not known."""
        ...

    def words(self, observation: Any) -> str:
        """The observation, as the agent may know it."""
        ...

    def state(self) -> str:
        """What the observation does not show of the state, for its key."""
        ...

    def begin(self) -> None:
        """An episode has begun."""
        ...

    def acted(self, action: int) -> None:
        """An action was executed."""
        ...

    def expert(self, observation: Any) -> ExpertAction:
        """The action that should follow, with thoughts."""
        ...


class SpacesAlone:
    """Nothing is known but the spaces: numbers become words, and nobody knows what to do."""

    fields: tuple[str, ...] = ("thoughts",)
    wins_by_ending: bool = False
    has_expert: bool = False
    knows_state: bool = False

    def __init__(self, environment: GymEnv, actions: tuple[str, ...]) -> None:
        self._space = environment.observation_space
        self.actions = actions
        name = environment.spec.id if environment.spec else type(environment.unwrapped).__name__
        self.goal = f"Play {re.sub(r'-v[0-9]+$', '', name)}."

    def ceiling(self, limit_steps: int) -> Ceiling | None:
        return None

    def words(self, observation: Any) -> str:
        return in_words(self._space, observation)

    def state(self) -> str:
        return ""

    def begin(self) -> None: ...

    def acted(self, action: int) -> None: ...

    def expert(self, observation: Any) -> ExpertAction:
        raise NotImplementedError("nobody knows what to do here")


def value_names(id: str, space: Any, bins: Any) -> tuple[str, ...]:
    """Names of the values of a continuous action; none where the actions are numbered or text.

    Args:
        id: of the environment, for the message.
        bins: number of values; 0 where the user named none.

    Raises:
        ConfigError: a continuous space that is no bounded number, or without bins; or bins that
            are no whole number, too many, or not wanted.
    """
    is_named = isinstance(space, spaces.Discrete | spaces.Text)
    if is_named and bins == 0:
        return ()
    is_small = isinstance(space, spaces.Box) and int(np.prod(space.shape)) == 1
    if is_named or (bins != 0 and is_small and not is_whole_number(bins, 2, MOST_ACTIONS)):
        allowed = "none" if is_named else f"a whole number from 2 to {MOST_ACTIONS}"
        raise ConfigError(f"bins is {brief(bins)} — expected {allowed}: {id} has {brief(space)}")
    if bins == 0 or not is_small or not space.is_bounded():
        raise ConfigError(
            f"{id} has the action space {brief(space)} — expected Discrete or Text, or one bounded "
            "number and environment.options bins=11"
        )
    low, high = float(space.low.flat[0]), float(space.high.flat[0])
    names = tuple(f"{value:.4g}" for value in np.linspace(low, high, bins))
    if len(set(names)) != bins:
        raise ConfigError(
            f"bins is {bins} — expected fewer: four digits do not tell so many values of "
            f"{brief(space)} apart"
        )
    return names


def action_names(environment: GymEnv, named: Sequence[str]) -> tuple[str, ...]:
    """Names of the actions of a Discrete space, in its order: the user's, those of the
    environment's own enumeration, or numbers.

    Raises:
        ConfigError: more actions than a prompt should list; or the user has named another number
            of them, or one twice.
    """
    space = environment.action_space
    assert isinstance(space, spaces.Discrete)
    count = int(space.n)
    if count > MOST_ACTIONS:
        raise ConfigError(
            f"the environment has {count} actions — expected at most {MOST_ACTIONS}: a prompt "
            "lists them all"
        )
    if named:
        if len(named) != count or len(set(named)) != count or "" in named:
            raise ConfigError(
                f"actions is {','.join(named)!r} — expected {count} different names, "
                "with commas between them"
            )
        return tuple(named)
    own: Any = getattr(environment.unwrapped, "actions", None)
    names = tuple(getattr(own, "__members__", ()))
    if len(names) == count:
        return names
    return tuple(str(int(space.start) + index) for index in range(count))


DISCOUNT = 0.999
"""Discount of the expert: it prefers the most probable success, and among equals the soonest."""
SWEEPS = 20_000
Floats = NDArray[np.float64]


class Layout(NamedTuple):
    """Words of a known environment."""

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
    """Knowledge of one instance with an open table."""

    has_expert: bool = True
    knows_state: bool = True
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
