"""What can be said of a Gymnasium environment, as of a shipped one."""

import inspect
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

from gymnasium import spaces

from forethought.environments.guard import one_look
from forethought.environments.gym.adapter import GymnasiumEnvironment, NoWordsError
from forethought.environments.gym.calling import brief
from forethought.environments.gym.knowledge import MOST_ACTIONS
from forethought.environments.parts import Option
from forethought.environments.registry import EnvironmentSpec, make_environment

_LISTED = 20
"""Actions beyond this are not listed."""


def describe(name: str) -> EnvironmentSpec:
    """The spec of an environment, which is built for that.

    Args:
        name: "gym:FrozenLake-v1".

    Raises:
        ForethoughtError: it cannot be built.
    """
    with one_look(name):
        try:
            made = make_environment(name)
        except NoWordsError:
            made = make_environment(name, view="image")
        environment = cast(GymnasiumEnvironment, made)
        try:
            return _spec(name, environment)
        finally:
            environment.close()


def _spec(name: str, environment: GymnasiumEnvironment) -> EnvironmentSpec:
    first = environment.observation()
    shows = "images alone (view=image)" if first.text is None else "text, an image, or both"
    return EnvironmentSpec(
        id=name,
        entry_point="forethought.environments.gym.adapter:GymnasiumEnvironment",
        summary=" ".join(first.goal.split()),
        observation=f"{shows}: {_parts(environment.wrapped.observation_space)}",
        actions=_listed(environment.actions),
        reward="the environment's own",
        success=environment.success_rule,
        expert="yes"
        if environment.has_expert
        else "none: train ppo, or SFT from stored episodes (--data)",
        options=(*_options(environment, first.text is None), *_keywords(environment)),
    )


def _parts(space: spaces.Space[Any]) -> str:
    """A Dict by its names: the spaces in it would be longer than a line."""
    return ", ".join(space.spaces) if isinstance(space, spaces.Dict) else brief(space)


def _listed(actions: tuple[str, ...] | None) -> str:
    if actions is None:
        return "any text"
    if len(actions) <= _LISTED:
        return " ".join(actions)
    return f"{' '.join(actions[:3])} … {actions[-1]} ({len(actions)} in all)"


def _options(environment: GymnasiumEnvironment, is_image: bool) -> Iterator[Option]:
    """Those that the adapter takes, whatever the environment is."""
    yield Option(
        "view", "image" if is_image else "text", "text, image or both", "what the agent is shown"
    )
    yield Option("image_size", 300, "a whole number from 32 to 2048", "side in pixels")
    yield Option("actions", "", "names with commas between them", "names of numbered actions")
    bins = f"a whole number from 2 to {MOST_ACTIONS}"
    yield Option("bins", 0, bins, "values of an action that is one bounded number")
    yield Option("goal", "", "any text", "what to do, where the observation has no mission")
    places = "a text or a file with {goal}, {text}, {actions} and {fields}"
    yield Option("template", "", places, "the prompt")
    limit = "a whole number from 1 to 100000"
    yield Option("limit_steps", environment.limit_steps, limit, "steps of an episode")
    above = "return above which an episode that terminated is a success"
    yield Option("success_above", None, "a number", above)


def _keywords(environment: GymnasiumEnvironment) -> Iterator[Option]:
    """Those of the environment's constructor, with the values that the id gives them."""
    inner = environment.wrapped.unwrapped
    given: dict[str, Any] = {} if inner.spec is None else inner.spec.kwargs
    parameters: tuple[inspect.Parameter, ...] = ()
    with suppress(TypeError, ValueError):  # It has no signature.
        parameters = tuple(inspect.signature(type(inner)).parameters.values())
    for parameter in parameters:
        is_open = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        if not is_open and parameter.name != "render_mode":
            value = given.get(parameter.name, parameter.default)
            is_plain = value is None or isinstance(value, str | int | float)
            default = value if is_plain else brief(value)
            allowed = "what its documentation says"
            yield Option(parameter.name, default, allowed, "a keyword of its constructor")
