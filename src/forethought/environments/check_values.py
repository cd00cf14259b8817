"""What each value that a world gives must look like, and how a breach is reported."""

import json
import math

import numpy as np

from forethought.environments.contract import Advice, Environment, Transition
from forethought.types import Measure, Observation


class EnvironmentCheckError(AssertionError):
    """A world breaks the contract; the message says what was got and what was expected."""


def require(condition: bool, got: str, expected: str) -> None:
    """Reports a breach of the contract.

    Raises:
        EnvironmentCheckError: the condition does not hold.
    """
    if not condition:
        raise EnvironmentCheckError(f"got {got} — expected {expected}")


def require_same(one: str, a: Observation, other: str, b: Observation) -> None:
    """Two observations that should be equal, each introduced by its words."""
    for name in ("state_key", "text", "admissible_actions", "goal", "task_type"):
        x, y = getattr(a, name), getattr(b, name)
        require(x == y, f"{one} has {name} {x!r}", f"{y!r}, as {other}")
    if a.image is not b.image:
        same = a.image is not None and b.image is not None and np.array_equal(a.image, b.image)
        require(same, f"{one} has one picture", f"the picture that {other} has")


def check_constants(environment: Environment) -> None:
    """What a world says of itself: its actions and its ceiling."""
    actions = environment.actions
    if actions is not None:
        require(
            all(type(action) is str for action in actions) and len(set(actions)) == len(actions),
            f"actions {actions!r}",
            "different strings, or None where actions are open text",
        )
    rate, method = environment.ceiling.success_rate, environment.ceiling.method
    require(0 <= rate <= 1, f"a ceiling of {rate}", "a success rate from 0 to 1")
    require(
        method.startswith(("exact: ", "estimated: ")),
        f"a ceiling's method {method!r}",
        '"exact: ..." or "estimated: ..."',
    )


def check_observation(observation: Observation) -> None:
    """Types and shapes of what the agent is shown."""
    text, image = observation.text, observation.image
    require(text is not None or image is not None, "neither text nor image", "at least one")
    require(text is None or type(text) is str, f"a text {text!r}", "a string or None")
    if image is not None:
        require(
            image.ndim == 3 and image.shape[2] == 3 and image.dtype == np.uint8,
            f"an image of shape {image.shape}, {image.dtype}",
            "[height, width, 3], uint8",
        )
    for name in ("state_key", "goal", "task_type"):
        value = getattr(observation, name)
        require(type(value) is str and value != "", f"{name} {value!r}", "a string, not empty")
    admissible = observation.admissible_actions
    require(
        admissible is None or all(type(action) is str for action in admissible),
        f"admissible_actions {admissible!r}",
        "a tuple of strings, or None",
    )


def check_outcome(success: bool, measures: tuple[Measure, ...]) -> None:
    """What a world says of an episode."""
    require(type(success) is bool, f"success {success!r}", "True or False")
    require(
        all(type(name) is str and math.isfinite(value) for name, value in measures),
        f"measures {measures!r}",
        "names and finite numbers",
    )


def check_legal(environment: Environment, legal: tuple[str, ...], is_over: bool) -> None:
    """Actions that are said to be legal: known ones, and some until the episode ends."""
    require(is_over or bool(legal), "no legal action", "at least one until the episode ends")
    strangers = set(legal) - set(environment.actions if environment.actions is not None else legal)
    require(not strangers, f"legal actions {sorted(strangers)}", f"some of {environment.actions}")


def check_advice(advice: Advice, legal: tuple[str, ...]) -> None:
    """The expert's action is legal, and its fields are JSON texts."""
    require(advice.action in legal, f"the expert's {advice.action!r}", f"a legal action of {legal}")
    for name, value in advice.fields:
        try:
            json.loads(value)
        except ValueError as error:
            raise EnvironmentCheckError(
                f"the expert's field {name!r} is {value!r}, expected JSON text"
            ) from error


def check_transition(transition: Transition) -> None:
    """A finite reward, and at most one way to end."""
    reward, terminated, truncated = transition
    require(math.isfinite(reward), f"a reward of {reward}", "a finite number")
    require(
        type(terminated) is bool and type(truncated) is bool and not (terminated and truncated),
        f"terminated {terminated!r} and truncated {truncated!r}",
        "two booleans, not both True",
    )
