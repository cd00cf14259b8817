"""Players that are models behind an endpoint: `api:NAME`."""

import os
import sys
from dataclasses import replace

from forethought.chat.http import endpoint_from
from forethought.chat.policy import PREFIX, ApiPolicy
from forethought.configs.api import ApiConfig
from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.generation.contract import Policy
from forethought.rollouts.examples import reasoning_and_acting
from forethought.rollouts.task import Task, open_task


def open_api_player(
    name: str, environment: EnvironmentConfig, prompt: PromptConfig, config: ApiConfig
) -> tuple[ApiPolicy, Task]:
    """The model, and the world told in the style that was chosen.

    Args:
        name: `api:NAME`.

    Raises:
        ForethoughtError: no endpoint, world or option of that name.
    """
    endpoint = endpoint_from(os.environ)
    is_react = config.style == "react"
    told = replace(prompt, format="action_only") if is_react else prompt
    world = open_task(environment, told, default_image_size=None)
    if is_react:
        world = reasoning_and_acting(world, examples=config.examples)
    return ApiPolicy(name.removeprefix(PREFIX), endpoint, config), world


def close_api(policy: Policy, config: ApiConfig) -> None:
    """Ends the threads of a model behind an endpoint, and says on stderr what was asked for;
    other policies have neither."""
    if isinstance(policy, ApiPolicy):
        policy.close()
        print(usage_line(policy, config), file=sys.stderr)


def usage_line(policy: ApiPolicy, config: ApiConfig) -> str:
    """What was asked for, and what it cost, in one line."""
    usage = policy.usage
    tokens = f"{usage.prompt_tokens:,} tokens of prompts, {usage.completion_tokens:,} of answers"
    uncounted = f" ({usage.uncounted:,} answers not counted)" if usage.uncounted else ""
    priced = config.prompt_price or config.completion_price
    cost = f", ${usage.cost(config):,.4f}" if priced else ""
    return f"api: {usage.answers:,} answers, {usage.retries:,} retries, {tokens}{uncounted}{cost}"
