"""From a person's settings to a world that can be played."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from forethought.config_parts import EnvironmentConfig, PromptConfig
from forethought.environments import find_environment, make_environment
from forethought.environments.contract import Ceiling, Environment
from forethought.environments.vector import InProcessRunner, Runner, SubprocessRunner
from forethought.errors import ConfigError
from forethought.prompts.choice import find_memory, make_prompter
from forethought.prompts.contract import Prompter
from forethought.prompts.history import HistoryPrompter
from forethought.prompts.wanted import WantedPrompter

TIMEOUT_S = 60.0
"""A worker process that is silent for so long is replaced and its episode retried."""


@dataclass(frozen=True)
class World:
    """A chosen environment with its options, and the words that belong to it."""

    id: str
    options: tuple[tuple[str, str | int | float | bool], ...]
    """What `factory` passes on, by name."""
    factory: Callable[[], Environment]
    actions: tuple[str, ...] | None
    ceiling: Ceiling
    prompter: Prompter

    def runner(self, slots: int, workers: int) -> Runner:
        """Hosts `slots` instances, in this process or in `workers` others."""
        if workers == 0:
            return InProcessRunner(self.factory, slots)
        return SubprocessRunner(self.factory, slots, workers=workers, timeout_s=TIMEOUT_S)


def open_world(
    config: EnvironmentConfig, prompt: PromptConfig, *, default_image_size: int | None
) -> World:
    """Checks the settings by building one instance.

    Args:
        default_image_size: pixels on a side where the settings name none; None leaves it
            to the world.

    Raises:
        ForethoughtError: unknown world, option or value, or a package to install.
    """
    is_own_class = ":" in config.id
    name = config.id if is_own_class else find_environment(config.id).name
    options = dict(_parse_option(option) for option in config.options)
    size = config.image_size
    if size is None and not is_own_class and _takes_images(name):
        size = default_image_size
    if size is not None:
        options["image_size"] = size
    factory = partial(make_environment, name, **options)
    sample = factory()
    try:
        wording = make_prompter(
            name, sample.actions, answer_format=prompt.format, wording=prompt.wording
        )
        if prompt.return_levels:
            level = prompt.return_level or prompt.return_levels
            wording = WantedPrompter(wording, level, prompt.return_levels)
        prompter = HistoryPrompter(
            wording,
            history=prompt.history,
            steps=prompt.history_steps,
            tells_invalid=prompt.tell_invalid,
            memory=find_memory(name) if prompt.history == "memory" else None,
        )
        return World(
            name, tuple(sorted(options.items())), factory, sample.actions, sample.ceiling, prompter
        )
    finally:
        sample.close()


def _takes_images(name: str) -> bool:
    return any(option.name == "image_size" for option in find_environment(name).options)


def _parse_option(option: str) -> tuple[str, str | int | float | bool]:
    """`name=value`, the value read as true/false, a whole number, a number, or text."""
    name, _, text = option.partition("=")
    if not name:
        raise ConfigError(f"environment.options has {option!r} — expected name=value")
    if text.lower() in ("true", "false"):
        return name, text.lower() == "true"
    for kind in (int, float):
        try:
            return name, kind(text)
        except ValueError:
            continue
    return name, text
