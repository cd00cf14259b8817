"""What a reward, an end, an image and a text must be, wherever they come from; what each value of
an environment must look like, and how a breach is reported.

The same rules hold for what an environment gives while it is played and for what is read from a
file. A function named `…_problem` returns what is wrong as one clause, or None.
"""

import json
import math
import re
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from forethought.environments.contract import Environment, ExpertAction, Transition, ceiling_of
from forethought.types import Metric, Observation

LARGEST_REWARD = 1e9
"""In size. Losses square returns in fp32, which ends at 3e38: rewards near that limit would
train on infinities, though each of them is finite."""

LARGEST_IMAGE = 1 << 24
"""Pixels: 4096 x 4096, 50 MB in memory."""

_HALF_SURROGATE = re.compile(r"[\ud800-\udfff]")


def reward_problem(reward: object) -> str | None:
    """A reward is a number of moderate size; never None, text, infinite or not a number."""
    is_number = isinstance(reward, int | float | np.integer | np.floating)
    if is_number and math.isfinite(reward) and abs(reward) <= LARGEST_REWARD:
        return None
    shown = f"{reward}" if is_number else f"{reward!r:.40}"
    return f"reward is {shown} — expected a finite number of at most {LARGEST_REWARD:g} in size"


def ends_problem(terminated: object, truncated: object) -> str | None:
    """An episode goes on, or ends in one of two ways."""
    if type(terminated) is bool and type(truncated) is bool and not (terminated and truncated):
        return None
    return (
        f"terminated is {terminated!r:.40} and truncated {truncated!r:.40} — expected two "
        "booleans, not both True"
    )


def image_problem(image: object) -> str | None:
    """An image is uint8 [height, width, 3], not empty, and small enough to be held."""
    if not isinstance(image, np.ndarray):
        return f"an image is {type(image).__name__} — expected an array, uint8 [H, W, 3]"
    image = cast(NDArray[Any], image)
    is_rgb = image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3
    if not is_rgb or not image.size:
        return (
            f"an image is {image.dtype} {list(image.shape)} — expected uint8 [H, W, 3], not empty"
        )
    return size_problem(image.shape[0], image.shape[1])


def size_problem(height: int, width: int) -> str | None:
    """The same of an image's size alone, before its pixels are in memory."""
    if height * width <= LARGEST_IMAGE:
        return None
    return (
        f"an image is {height} x {width} — expected at most {LARGEST_IMAGE} pixels "
        f"({math.isqrt(LARGEST_IMAGE)} x {math.isqrt(LARGEST_IMAGE)})"
    )


def text_problem(name: str, text: str) -> str | None:
    """A text can be encoded: it holds no half of a surrogate pair, which no tokenizer takes."""
    half = None if text.isascii() else _HALF_SURROGATE.search(text)
    if half is None:
        return None
    return (
        f"{name} holds {half[0]!r} at character {half.start()} — expected text without half "
        "surrogate pairs"
    )


class EnvironmentCheckError(AssertionError):
    """An environment breaks the contract; the message says what was got and what was expected."""


def require(condition: bool, got: str, expected: str) -> None:
    """Reports a breach of the contract.

    Raises:
        EnvironmentCheckError: the condition does not hold.
    """
    if not condition:
        raise EnvironmentCheckError(f"got {got} — expected {expected}")


def refuse(problem: str | None) -> None:
    """Reports a breach that is already said in words.

    Raises:
        EnvironmentCheckError: there is one.
    """
    if problem is not None:
        raise EnvironmentCheckError(problem)


def require_same(one: str, a: Observation, other: str, b: Observation) -> None:
    """Two observations that should be equal, each introduced by its words."""
    for name in ("state_key", "text", "admissible_actions", "goal", "task_type"):
        x, y = getattr(a, name), getattr(b, name)
        require(x == y, f"{one} has {name} {x!r}", f"{y!r}, as {other}")
    if a.image is not b.image:
        same = a.image is not None and b.image is not None and np.array_equal(a.image, b.image)
        require(same, f"{one} has one image", f"the image that {other} has")


def check_constants(environment: Environment) -> None:
    """Checks what an environment says of itself: its actions and its ceiling."""
    actions = environment.actions
    if actions is not None:
        require(
            all(type(action) is str for action in actions) and len(set(actions)) == len(actions),
            f"actions {actions!r}",
            "different strings, or None where actions are open text",
        )
    ceiling = ceiling_of(environment)
    if ceiling is None:
        return
    rate, method = ceiling.success_rate, ceiling.method
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
        refuse(image_problem(image))
    for name in ("state_key", "goal", "task_type"):
        value = getattr(observation, name)
        require(type(value) is str and value != "", f"{name} {value!r}", "a string, not empty")
        refuse(text_problem(name, value))
    refuse(None if text is None else text_problem("text", text))
    admissible = observation.admissible_actions
    if admissible is None:
        return
    require(
        all(type(action) is str for action in admissible),
        f"admissible_actions {admissible!r}",
        "a tuple of strings, or None",
    )
    for action in admissible:
        refuse(text_problem("admissible_actions", action))


def check_outcome(success: bool, metrics: tuple[Metric, ...]) -> None:
    """Checks what an environment says of an episode."""
    require(type(success) is bool, f"success {success!r}", "True or False")
    require(
        all(type(name) is str and _is_finite(value) for name, value in metrics),
        f"metrics {metrics!r}",
        "names and finite numbers",
    )


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and math.isfinite(value)


def check_legal(environment: Environment, legal: tuple[str, ...], is_over: bool) -> None:
    """Actions that are said to be legal: known ones, and some until the episode ends."""
    require(is_over or bool(legal), "no legal action", "at least one until the episode ends")
    strangers = set(legal) - set(environment.actions if environment.actions is not None else legal)
    require(not strangers, f"legal actions {sorted(strangers)}", f"some of {environment.actions}")


def check_expert_action(expert_action: ExpertAction, legal: tuple[str, ...]) -> None:
    """The expert's action is legal, and its fields are JSON texts."""
    require(
        expert_action.action in legal,
        f"the expert's {expert_action.action!r}",
        f"a legal action of {legal}",
    )
    for name, value in expert_action.fields:
        try:
            json.loads(value)
        except ValueError as error:
            raise EnvironmentCheckError(
                f"the expert's field {name!r} is {value!r}, expected JSON text"
            ) from error


def checked_transition(transition: Transition) -> Transition:
    """A reward that can be learned from, as a Python number, and at most one way to end.

    Raises:
        EnvironmentCheckError: anything else.
    """
    reward, terminated, truncated = transition
    refuse(reward_problem(reward))
    refuse(ends_problem(terminated, truncated))
    return Transition(float(reward), terminated, truncated)
