"""What a command advises to type next, with all that decides how an environment is played."""

import shlex
from collections.abc import Sequence
from dataclasses import fields, replace

from forethought.cli.flags import value_of
from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.environments import find_environment
from forethought.errors import UnknownNameError

_LEFT_OUT = ("id", "workers")
"""Said in any case; and what changes no episode."""


def environment_flags(
    environment: EnvironmentConfig, prompt: PromptConfig, *, image_size: int | None
) -> str:
    """The flags of an environment and its prompt: its name, and what differs from the defaults.

    Args:
        image_size: pixels on a side, where the settings leave them to the model.
    """
    if environment.image_size is None and _takes_image_size(environment.id):
        environment = replace(environment, image_size=image_size)
    words = ["--environment.id", environment.id]
    for group, settings in (("environment", environment), ("prompt", prompt)):
        for field in fields(settings):
            value = getattr(settings, field.name)
            if field.name in _LEFT_OUT or value == field.default:
                continue
            words.append(f"--{group}.{field.name.replace('_', '-')}")
            if value is not True:
                words += value if isinstance(value, tuple) else [str(value)]
    return shlex.join(words)


def _takes_image_size(name: str) -> bool:
    if ":" in name:
        return False
    return any(option.name == "image_size" for option in find_environment(name).options)


def require_environment(name: str, words: Sequence[str]) -> None:
    """Refuses a model whose environment is not known.

    Raises:
        UnknownNameError: it is no run, and no environment was named.
    """
    if value_of(words, "--environment.id") is None:
        raise UnknownNameError(
            f"{name} is not a run folder — name one; or, for another model, "
            "name the environment as well, with --environment.id"
        )
