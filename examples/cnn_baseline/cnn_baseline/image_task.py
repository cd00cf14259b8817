"""Environments as an agent without words sees them: an image, and a fixed list of actions."""

from dataclasses import replace
from typing import NamedTuple

from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.errors import ConfigError
from forethought.rollouts.task import Task, open_task
from forethought.types import Message, Observation


class BarePrompter:
    """Image and text of the observation, for an agent that reads no instructions."""

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        """One message; its text is empty where the observation has none."""
        return (Message("user", observation.text or "", observation.image),)


class ImageTask(NamedTuple):
    """A task, and what a network must know to be made for it."""

    task: Task
    """Its prompter shows the observation and says nothing about it."""
    actions: tuple[str, ...]
    height: int
    """Of the image, in pixels."""
    width: int
    has_text: bool
    """Whether its observations hold words as well."""


def open_image_task(config: EnvironmentConfig, *, default_image_size: int | None) -> ImageTask:
    """Opens the task, and plays the first moment of an episode to find its image.

    Raises:
        ConfigError: the environment has no image, or its actions are open text.
        ForethoughtError: as `open_task`.
    """
    task = open_task(config, PromptConfig(), default_image_size=default_image_size)
    observation = task.first_observation(0)
    if task.actions is None or observation.image is None:
        lacks = "its actions are open text" if task.actions is None else "it has no image"
        raise ConfigError(
            f"environment.id is {config.id!r}, but {lacks} — expected an environment with an "
            "image and a fixed list of actions"
        )
    height, width = observation.image.shape[:2]
    bare = replace(task, prompter=BarePrompter())
    return ImageTask(bare, task.actions, height, width, observation.text is not None)
