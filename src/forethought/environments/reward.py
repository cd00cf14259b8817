"""A reward of one's own in place of the environment's (`environment.reward`)."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from forethought.environments.contract import Environment, Transition
from forethought.errors import ConfigError, UnknownNameError
from forethought.types import Observation


@dataclass(frozen=True, eq=False)
class StepOutcome:
    """What one action did, for a reward function."""

    observation: Observation
    """Before the action."""
    action: str
    reward: float
    """The environment's own."""
    next_observation: Observation
    terminated: bool
    truncated: bool
    success: bool
    """Whether the episode, as played so far, meets the environment's definition of success."""


RewardFunction = Callable[[StepOutcome], float]
"""Gives the reward that is learned from. A function of its argument alone: episodes are replayed
after a crash and after a resume, and must be paid alike."""

_given: dict[str, RewardFunction] = {}
"""Functions that no import finds (a lambda, a function in a function), by the name that this
process gave them."""


def reward_name(function: RewardFunction) -> str:
    """The name that settings record for a function, by which this process finds it again."""
    module = getattr(function, "__module__", None) or "__main__"
    name = f"{module}:{getattr(function, '__qualname__', type(function).__qualname__)}"
    if not is_importable(name, function):
        _given[name] = function
    return name


def is_importable(name: str, function: RewardFunction) -> bool:
    """Whether another process finds this function by its name."""
    if name.startswith("__main__:"):
        return False
    try:
        return _imported(name) is function
    except UnknownNameError:
        return False


def find_reward(name: str) -> RewardFunction:
    """The function of a name.

    Raises:
        UnknownNameError: its module or the function does not exist.
        ConfigError: it cannot be called.
    """
    function = _given[name] if name in _given else _imported(name)
    if not callable(function):
        raise ConfigError(f"environment.reward is {name!r}, which is no function")
    return function


def with_reward(environment: Environment, reward: RewardFunction) -> Environment:
    """The same environment, whose `step` pays what the function says.

    Only the method of this instance is replaced, so that all else that the environment offers
    stays as it is.

    Raises:
        ConfigError: the environment's class allows no attributes (`__slots__`).
    """
    own_step = environment.step

    def step(action: str) -> Transition:
        before = environment.observation()
        transition = own_step(action)
        outcome = StepOutcome(
            before,
            action,
            transition.reward,
            environment.observation(),
            transition.terminated,
            transition.truncated,
            environment.success(),
        )
        return transition._replace(reward=float(reward(outcome)))

    try:
        environment.step = step
    except AttributeError:
        raise ConfigError(
            f"environment.reward is set, but {type(environment).__name__} has __slots__ — "
            "leave them out of the class"
        ) from None
    return environment


def _imported(name: str) -> RewardFunction:
    module_name, _, path = name.partition(":")
    try:
        found = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise UnknownNameError(
            f"environment.reward {name!r}: module {error.name} does not exist"
        ) from None
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UnknownNameError(
                f"environment.reward {name!r}: {part!r} does not exist in {module_name} — a "
                "function that was given as an object is known to its own process alone"
            ) from None
    return found  # pyright: ignore[reportReturnType]
