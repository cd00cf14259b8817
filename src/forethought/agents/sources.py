"""What may be named as a policy: a run, a checkpoint, a model's folder, a hub id, or a model behind
an endpoint (`api:NAME`); and how it is opened."""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from forethought.algorithms.registry import algorithm_of
from forethought.chat.http import endpoint_from
from forethought.chat.policy import PREFIX, ApiPolicy
from forethought.configs.acting import ApiConfig, GenerationConfig
from forethought.configs.contract import AnyConfig
from forethought.configs.file import load_any_config
from forethought.configs.parts import TINY_MODELS, EnvironmentConfig, PromptConfig
from forethought.environments.contract import expert_of
from forethought.errors import ConfigError
from forethought.generation.contract import Policy
from forethought.prompts.history import with_history
from forethought.prompts.react import ReActPrompter, follow_on, write_thought_and_action
from forethought.rollouts.seeding import Split, episode_seed
from forethought.rollouts.task import Task, open_task
from forethought.runs.checkpoints import MODEL_DIR, find_checkpoint, newest_checkpoint
from forethought.runs.run_folder import RunFolder
from forethought.types import Message


class Source(NamedTuple):
    """Where a model lies, and what is known of how it was trained."""

    model: str
    """A folder of `save_pretrained`, a hub id, or `api:NAME`."""
    run: RunFolder | None
    """The run, where one was named; its checkpoints and other models have none."""
    checkpoint: str | None
    """`step_400`."""
    config: AnyConfig | None
    """The settings that it was trained with."""

    @property
    def is_api(self) -> bool:
        """Whether it is a model behind an OpenAI-compatible API."""
        return self.model.startswith(PREFIX)

    @property
    def max_new_tokens(self) -> int | None:
        """The longest completion that it was trained with, where that is known."""
        return None if self.config is None else self.config.max_new_tokens

    @property
    def open_policy(self) -> Callable[..., tuple[Policy, Task]] | None:
        """What opens a policy that is no language model, where its algorithm trains such."""
        return None if self.config is None else algorithm_of(self.config).open_policy


def find_source(name: str) -> Source:
    """The policy that a name refers to; of a run, its newest checkpoint.

    Raises:
        CheckpointError: the checkpoint, or the run's newest one, is damaged, or there is none.
        ConfigError: the run's settings cannot be read; or the name is that of the tiny
            model, which has to be trained first.
    """
    path = Path(name)
    if name in TINY_MODELS and not path.exists():
        raise ConfigError(
            f'model "{name}" is not trained yet — train it (`forethought train sft`), '
            "then name its run folder"
        )
    folder = RunFolder(path)
    if folder.is_run:
        config = load_any_config(folder.config_path)
        newest = newest_checkpoint(folder.checkpoints_dir)
        return Source(str(newest / MODEL_DIR), folder, newest.name, config)
    checkpoint = find_checkpoint(path)
    if checkpoint is not None:
        its_run = RunFolder(path.parent.parent)
        config = load_any_config(its_run.config_path) if its_run.is_run else None
        return Source(str(path / MODEL_DIR), None, path.name, config)
    return Source(name, None, None, None)


def open_agent(
    source: Source,
    environment: EnvironmentConfig,
    prompt: PromptConfig,
    *,
    slots: int,
    api: ApiConfig,
    generation: GenerationConfig | None = None,
) -> tuple[Policy, Task]:
    """Loads a model, and opens an environment in the way that the model sees it.

    Args:
        slots: completions that a model generates at a time.
        api: settings of an OpenAI-compatible API.
        generation: engines that serve this very model, if they are to write its responses.

    Raises:
        ForethoughtError: a model, environment or option that is not there.
    """
    if source.is_api:
        return open_api_agent(source.model, environment, prompt, api)
    if (open_policy := source.open_policy) is not None:
        return open_policy(Path(source.model), environment, prompt, slots=slots)
    if generation is not None and generation.engine:
        return open_remote_agent(source.model, environment, prompt, generation)
    from forethought.value_guided.policy import load_acting

    if prompt.history == "summary":  # refuses at once what is no use once the model is loaded
        open_task(environment, prompt, default_image_size=None)
    policy = load_acting(source.model, slots=slots)
    size = policy.preferred_image_size
    return policy, open_task(environment, prompt, default_image_size=size)


def open_api_agent(
    name: str, environment: EnvironmentConfig, prompt: PromptConfig, config: ApiConfig
) -> tuple[ApiPolicy, Task]:
    """The model, and the environment with prompts in the style that was chosen.

    Args:
        name: `api:NAME`.

    Raises:
        ForethoughtError: no endpoint, environment or option of that name.
    """
    endpoint = endpoint_from(os.environ)
    is_react = config.style == "react"
    told = replace(prompt, format="action_only") if is_react else prompt
    task = open_task(environment, told, default_image_size=None)
    if is_react:
        task = reasoning_and_acting(task, examples=config.examples)
    return ApiPolicy(name.removeprefix(PREFIX), endpoint, config), task


def open_remote_agent(
    model: str, environment: EnvironmentConfig, prompt: PromptConfig, config: GenerationConfig
) -> tuple[Policy, Task]:
    """A model whose responses engines write: here are its tokenizer and processor alone.

    Raises:
        ForethoughtError: no model, environment or option of that name.
    """
    # torch is not needed to ask an endpoint.
    from forethought.chat.remote import RemotePolicy
    from forethought.models.encoding import Encoder
    from forethought.models.loading import load_outline

    outline = load_outline(model)
    task = open_task(environment, prompt, default_image_size=outline.preferred_image_size)
    return RemotePolicy(Encoder(outline.model, outline.processor), config), task


def close_api(policy: Policy, config: ApiConfig) -> None:
    """Ends the threads of a model behind an endpoint, and says on stderr what was asked for of an
    API; other policies have neither."""
    close = getattr(policy, "close", None)
    if close is not None:
        close()
    if isinstance(policy, ApiPolicy):
        print(usage_line(policy, config), file=sys.stderr)


def usage_line(policy: ApiPolicy, config: ApiConfig) -> str:
    """What was asked for, and what it cost, in one line."""
    usage = policy.usage
    tokens = (
        f"{usage.prompt_tokens:,} tokens of prompts, {usage.completion_tokens:,} of completions"
    )
    uncounted = f" ({usage.uncounted:,} responses not counted)" if usage.uncounted else ""
    priced = config.prompt_price or config.completion_price
    cost = f", ${usage.cost(config):,.4f}" if priced else ""
    return f"api: {usage.answers:,} responses, {usage.retries:,} retries, {tokens}{uncounted}{cost}"


def reasoning_and_acting(task: Task, *, examples: int) -> Task:
    """The same environment with the prompts of `ReActPrompter`; the history is the task's own.

    Args:
        task: its prompter asks for the action alone.
        examples: episodes of the expert that are shown.
    """
    told = with_history(task.prompter)
    shown: list[Message] = []
    environment = task.factory()
    try:
        for index in range(examples):
            observation = environment.reset(episode_seed(Split.DEMONSTRATION, 0, index))
            before: tuple[Message, ...] = ()
            ended = False
            while not ended:
                now = told.inner.messages(observation)
                expert_action = expert_of(environment).expert()
                response = Message("assistant", write_thought_and_action(expert_action))
                shown += [*follow_on(before, now), response]
                transition = environment.step(expert_action.action)
                ended = transition.terminated or transition.truncated
                before, observation = now, environment.observation()
    finally:
        environment.close()
    wording = ReActPrompter(told.inner, tuple(shown))
    return replace(task, prompter=replace(told, inner=wording))
