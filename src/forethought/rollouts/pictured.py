"""Worlds for agents without words: a picture, and a fixed list of actions."""

from dataclasses import replace
from typing import NamedTuple

from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.errors import ConfigError
from forethought.prompts.bare import BarePrompter
from forethought.rollouts.task import Task, open_task


class PicturedTask(NamedTuple):
    world: Task
    """Its prompter shows the observation and says nothing about it."""
    actions: tuple[str, ...]
    height: int
    """Of the picture, in pixels."""
    width: int
    has_text: bool
    """Whether its observations hold words as well."""


def open_pictured_task(
    config: EnvironmentConfig, *, default_image_size: int | None
) -> PicturedTask:
    """Checks by playing the first moment of an episode that there is something to see.

    Raises:
        ConfigError: the world has no picture, or its actions are open text.
        ForethoughtError: as `open_task`.
    """
    world = open_task(config, PromptConfig(), default_image_size=default_image_size)
    observation = world.first_observation(0)
    if world.actions is None or observation.image is None:
        lacks = "its actions are open text" if world.actions is None else "it has no picture"
        raise ConfigError(
            f"environment.id is {config.id!r}, but {lacks} — expected a world with a picture "
            "and a fixed list of actions"
        )
    height, width = observation.image.shape[:2]
    return PicturedTask(
        replace(world, prompter=BarePrompter()),
        world.actions,
        height,
        width,
        observation.text is not None,
    )
