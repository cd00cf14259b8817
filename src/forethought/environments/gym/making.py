"""Building a Gymnasium environment by its id."""

import os
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import gymnasium
from gymnasium import spaces

from forethought.environments.gym.calling import brief, calling, message
from forethought.environments.gym.knowledge import GymEnv
from forethought.errors import ConfigError, UnknownNameError

HOMES = {"MiniGrid-": "minigrid", "BabyAI-": "minigrid", "ALE/": "ale_py"}
"""Modules that register ids that begin so."""


def make_gym(name: str, *, renders: bool, options: Mapping[str, Any]) -> GymEnv:
    """The environment of an id, without Gymnasium's checker.

    Args:
        name: the id with what the user puts before it: "gym:minigrid:MiniGrid-Empty-5x5-v0".
        renders: whether `render` will be asked for images.
        options: keywords of its constructor.

    Raises:
        UnknownNameError: no such id.
        MissingDependencyError: a package that it needs is not installed.
        ConfigError: its module or its constructor raised an exception, or it lacks a space.
    """
    for variable in ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER"):
        os.environ.setdefault(variable, "dummy")  # pygame draws into memory alone
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    module, _, id = name.partition(":")[2].rpartition(":")
    homes = [home for prefix, home in HOMES.items() if id.startswith(prefix)]
    for needed in [module] if module else homes:
        _import(name, needed)
    words = ", ".join(f"{key}={brief(value)}" for key, value in options.items())
    advice = "correct environment.options" if options else "correct the environment, or its id"
    with calling(name, f"make({words})", f"expected an environment; {advice}", ConfigError):
        environment = _make(name, id, renders=renders, options=options)
        _require_spaces(name, environment)
    return environment


def _make(name: str, id: str, *, renders: bool, options: Mapping[str, Any]) -> GymEnv:
    mode = "rgb_array" if renders else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return gymnasium.make(id, render_mode=mode, disable_env_checker=True, **options)
    except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv) as error:
        raise UnknownNameError(f"{name}: {message(error)}") from None


def _import(name: str, module: str) -> None:
    expected = "expected a module that registers the id; correct it, or its name"
    with warnings.catch_warnings(), calling(name, f"import {module}", expected, ConfigError):
        warnings.simplefilter("ignore")
        import_module(module)


def _require_spaces(name: str, environment: GymEnv) -> None:
    for attribute in ("action_space", "observation_space"):
        space = getattr(environment, attribute, None)
        if not isinstance(space, spaces.Space):
            raise ConfigError(
                f"{name}: its {attribute} is {brief(space)} — expected a space of "
                "gymnasium.spaces; set it in the constructor"
            )
