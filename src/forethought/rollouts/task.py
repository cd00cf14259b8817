"""From a person's settings to an environment that can be played."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.environments import find_environment, make_environment
from forethought.environments.check import prove
from forethought.environments.check_values import EnvironmentCheckError, check_observation
from forethought.environments.contract import (
    Ceiling,
    Environment,
    Prompter,
    WithActionResolution,
    WithExpert,
    WithHeldOutEpisodes,
    WithVocabulary,
    ceiling_of,
)
from forethought.environments.guard import TIMEOUT_S, one_look
from forethought.environments.registry import GYMNASIUM_PREFIX
from forethought.environments.reward import find_reward, with_reward
from forethought.environments.vector import InProcessRunner, Runner, SubprocessRunner
from forethought.errors import ConfigError, EnvironmentUnusableError
from forethought.prompts.history import HistoryPrompter
from forethought.prompts.prompters import ReturnBinPrompter, find_summary, make_prompter
from forethought.types import Observation


@dataclass(frozen=True)
class Task:
    """A chosen environment with its options, and the words that belong to it."""

    id: str
    options: tuple[tuple[str, str | int | float | bool], ...]
    """What `factory` passes on, by name."""
    factory: Callable[[], Environment]
    actions: tuple[str, ...] | None
    ceiling: Ceiling | None
    prompter: Prompter
    has_expert: bool = True
    held_out_episodes: int | None = None
    """Different ones, in environments that have only so many."""
    vocabulary: tuple[str, ...] = ()
    """Words that a tokenizer should know as one token each."""

    @property
    def ceiling_rate(self) -> float | None:
        """The best success rate, where it is known."""
        return None if self.ceiling is None else self.ceiling.success_rate

    def require_expert(self) -> None:
        """Raises:
        ConfigError: the environment knows no expert to learn from.
        """
        if not self.has_expert:
            raise ConfigError(
                f"{self.id} has no expert — learn from stored episodes (--data FOLDER), "
                "or from reward alone (train ppo)"
            )

    def prove(self) -> str | None:
        """Whether a stranger's environment can be replayed; None where that is known already.

        Raises:
            EnvironmentUnusableError: it cannot, or it breaks the contract otherwise.
        """
        return prove(self.id, self.factory) if self.id.startswith(GYMNASIUM_PREFIX) else None

    def runner(self, slots: int, workers: int) -> Runner:
        """Hosts `slots` instances, in this process or in `workers` others."""
        if workers == 0:
            return InProcessRunner(self.factory, slots, timeout_s=TIMEOUT_S)
        return SubprocessRunner(self.factory, slots, workers=workers, timeout_s=TIMEOUT_S)

    def first_observation(self, seed: int) -> Observation:
        """What a fresh instance shows at the beginning of an episode.

        Raises:
            EnvironmentUnusableError: it is silent, would end the process, or shows what no
                agent could be shown.
        """
        with one_look(self.id):
            environment = self.factory()
            try:
                observation = environment.reset(seed)
            finally:
                environment.close()
        try:
            check_observation(observation)
        except EnvironmentCheckError as error:
            raise EnvironmentUnusableError(f"{self.id}: seed {seed}, step 0: {error}") from None
        return observation


def open_task(
    config: EnvironmentConfig, prompt: PromptConfig, *, default_image_size: int | None
) -> Task:
    """Checks the settings by building one instance.

    Args:
        default_image_size: pixels on a side where the settings name none; None leaves it
            to the environment.

    Raises:
        ForethoughtError: unknown environment, option or value, or a package to install.
    """
    name = _name_of(config)
    options = _options_of(config)
    size = config.image_size
    if size is None and (name.startswith(GYMNASIUM_PREFIX) or _takes_images(name)):
        size = default_image_size
    if size is not None:
        options["image_size"] = size
    factory = partial(make_environment, name, **options)
    if config.reward is not None:
        factory = partial(_make_rewarded, factory, config.reward)
    with one_look(name):
        sample = factory()
    try:
        wording = make_prompter(sample, response_format=prompt.format, wording=prompt.wording)
        if prompt.return_bins:
            level = prompt.return_bin or prompt.return_bins
            wording = ReturnBinPrompter(wording, level, prompt.return_bins)
        prompter = HistoryPrompter(
            wording,
            history=prompt.history,
            steps=prompt.history_steps,
            invalid_action_feedback=prompt.invalid_action_feedback,
            summarize=find_summary(name, sample) if prompt.history == "summary" else None,
            answer_form=prompt.answer_form,
            resolve_action=(
                sample.resolve_action if isinstance(sample, WithActionResolution) else None
            ),
        )
        return Task(
            name,
            tuple(sorted(options.items())),
            factory,
            sample.actions,
            ceiling_of(sample),
            prompter,
            isinstance(sample, WithExpert),
            sample.held_out_episodes if isinstance(sample, WithHeldOutEpisodes) else None,
            sample.vocabulary if isinstance(sample, WithVocabulary) else (),
        )
    finally:
        sample.close()


def require_known(config: EnvironmentConfig) -> None:
    """Refuses an unknown name. Builds nothing, and loads no more than a list of names.

    Raises:
        UnknownNameError: no environment of this name; the message names the nearest.
    """
    _name_of(config)


def _make_rewarded(factory: Callable[[], Environment], reward: str) -> Environment:
    """Looked up by name where it is built, so that worker processes find it, too."""
    return with_reward(factory(), find_reward(reward))


def _name_of(config: EnvironmentConfig) -> str:
    return config.id if ":" in config.id else find_environment(config.id).name


def _options_of(config: EnvironmentConfig) -> dict[str, str | int | float | bool]:
    return dict(_parse_option(option) for option in config.options)


def _takes_images(name: str) -> bool:
    if ":" in name:
        return False
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
