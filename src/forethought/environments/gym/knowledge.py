"""What is known of a Gymnasium environment beyond its spaces: words, an expert, a ceiling."""

import re
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium import Env, spaces

from forethought.environments.contract import Ceiling, ExpertAction
from forethought.errors import ConfigError

MOST_NUMBERS = 64
"""A `Box` of more is an image, or nothing that a prompt should hold."""

GymEnv = Env[Any, Any]


class Knowledge(Protocol):
    """Of one instance. Privileged: the state is read where it helps."""

    actions: tuple[str, ...]
    goal: str
    """Where the observation has no mission."""
    fields: tuple[str, ...]
    """Of the expert's answer, before the action."""
    wins_by_ending: bool
    """Whether an episode that terminates is a success, whatever it paid."""
    has_expert: bool

    def ceiling(self, limit_steps: int) -> Ceiling | None: ...

    def words(self, observation: Any) -> str:
        """The observation, as the agent may know it."""
        ...

    def state(self) -> str:
        """What the observation does not tell of the state, for its key."""
        ...

    def begin(self) -> None:
        """An episode has begun."""
        ...

    def acted(self, action: int) -> None:
        """An action was executed."""
        ...

    def expert(self, observation: Any) -> ExpertAction: ...


class SpacesAlone:
    """Nothing is known but the spaces: numbers become words, and nobody knows what to do."""

    fields: tuple[str, ...] = ("thoughts",)
    wins_by_ending: bool = False
    has_expert: bool = False

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


def in_words(space: spaces.Space[Any], value: Any) -> str:
    """Text as it is, numbers with blanks between them, one line for each part of a Dict or Tuple.
    The mission is left out: it is the goal."""
    if isinstance(space, spaces.Dict):
        parts = ((name, part) for name, part in space.spaces.items() if name != "mission")
        return "\n".join(f"{name}: {in_words(part, value[name])}" for name, part in parts)
    if isinstance(space, spaces.Tuple):
        return "\n".join(in_words(s, v) for s, v in zip(space.spaces, value, strict=True))
    if isinstance(space, spaces.Text):
        return str(value)
    return " ".join(f"{number:.4g}" for number in np.ravel(np.asarray(value, float)).tolist())


def can_be_said(space: spaces.Space[Any]) -> bool:
    """Whether `in_words` makes a text of what the space holds."""
    if isinstance(space, spaces.Dict):
        return all(can_be_said(s) for name, s in space.spaces.items() if name != "mission")
    if isinstance(space, spaces.Tuple):
        return all(can_be_said(part) for part in space.spaces)
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        return int(np.prod(space.shape)) <= MOST_NUMBERS
    return isinstance(space, spaces.Text | spaces.Discrete)


def action_names(environment: GymEnv, named: Sequence[str]) -> tuple[str, ...]:
    """Names of the actions of a Discrete space, in its order: the user's, those of the
    environment's own enumeration, or numbers.

    Raises:
        ConfigError: the user has named another number of them, or one twice.
    """
    space = environment.action_space
    assert isinstance(space, spaces.Discrete)
    count = int(space.n)
    if named:
        if len(set(named)) != count:
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
