"""What every world offers: the Gymnasium side, and the side that is made of words.

A world is a `gymnasium.Env` with standard spaces, so that `gymnasium.make` and
`check_env` work on it. Language agents use the text side below: they read an
`Observation` and answer with a string, and any string is an answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from forethought.types import Measure, Observation, ThoughtFacts


class Transition(NamedTuple):
    """What one action did."""

    reward: float
    terminated: bool
    truncated: bool


class Advice(NamedTuple):
    """What the world's own expert would answer."""

    action: str
    fields: tuple[tuple[str, str], ...]
    """The answer's JSON fields before `action`, in order, values as JSON text:
    `(("cards", "[7, 5]"), ("formula", '"7+"'), ("thoughts", '"..."'))`."""


@dataclass(frozen=True)
class Ceiling:
    """The best success rate that any policy can reach."""

    success_rate: float
    method: str
    """How it is known: "exact: ..." or "estimated: ..."."""


class Environment(Protocol):
    """The text side of a world.

    Deterministic given the seed of `reset` and the sequence of actions: replaying
    both restores any state. That is how episodes survive a kill or a crash.
    """

    @property
    def actions(self) -> tuple[str, ...] | None:
        """Every action of this world, or None where actions are open text."""
        ...

    @property
    def ceiling(self) -> Ceiling: ...

    def restart(self, seed: int) -> Observation:
        """Starts the episode that `seed` stands for."""
        ...

    def observation(self) -> Observation:
        """The present state as the agent may know it."""
        ...

    def act(self, action: str) -> Transition:
        """Executes any string. One that names no action of this world changes nothing
        but counts as a step, at the world's penalty for it.

        Raises:
            RuntimeError: the episode is over; `restart` first.
        """
        ...

    def legal_actions(self) -> tuple[str, ...]:
        """Actions that the rules allow in the present state, in a fixed order."""
        ...

    def expert(self) -> Advice:
        """The expert's answer in the present state."""
        ...

    def success(self) -> bool:
        """Whether the episode, as played so far, meets the world's success definition."""
        ...

    def measures(self) -> tuple[Measure, ...]:
        """Further numbers of the episode as played so far; may be empty."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class WithMeanings(Protocol):
    """What a tuple of admissible actions offers besides, if the world takes other texts for one
    of them, too: such an answer is that action, not an invalid one."""

    def meant_by(self, text: str) -> str | None:
        """The listed action that a text stands for; None: none of them."""
        ...


@runtime_checkable
class WithHeldOutEpisodes(Protocol):
    """What a world offers besides, if it has only so many different held-out episodes: the seeds
    behind them play the same ones again."""

    @property
    def held_out_episodes(self) -> int:
        """How many there are."""
        ...


@runtime_checkable
class WithThoughtFacts(Protocol):
    """What an environment offers besides, if it can tell whether a thought is true."""

    def thought_facts(self, response: str) -> ThoughtFacts:
        """What a response claims about the present state, and the truth. Total: any text gives
        one, and nothing changes.

        Args:
            response: all that the agent wrote, its action included.
        """
        ...


DataPlayer = Callable[[], Advice]
"""Answers in the world's present state; one for each episode."""


@runtime_checkable
class WithDataPolicy(Protocol):
    """What a world offers besides, if its offline data have an author of their own: a player
    between chance and expert, as good as the published data (`collect --policy data`)."""

    @property
    def data_skill(self) -> float:
        """The setting with which the data policy is as good as the published data."""
        ...

    def data_policy(self, skill: float, randomness: np.random.Generator) -> DataPlayer:
        """The data policy for one episode, which may not have begun yet.

        Args:
            skill: how good it is, on a scale of the world's own; its docstring says which.
            randomness: of all that it draws, in this episode and nowhere else.

        Raises:
            ConfigError: a skill outside the world's scale.
        """
        ...
