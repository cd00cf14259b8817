"""Agents that play the episodes of a collection: expert, random policy, data policy or model."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from forethought.agents.sources import Source, close_api, open_agent
from forethought.configs.acting import ApiConfig
from forethought.configs.parts import EnvironmentConfig, PromptConfig, SamplingConfig
from forethought.environments.contract import WithDataPolicy
from forethought.errors import ConfigError
from forethought.generation.remembering import RememberingPolicy
from forethought.libraries import load_quietly
from forethought.rollouts.collector import Collector
from forethought.rollouts.scripted import DataResponse, expert_response, play, random_response
from forethought.rollouts.seeding import Split, completion_seed, episode_seed
from forethought.rollouts.task import Task, open_task
from forethought.types import Trajectory

_DATA = "data"

Advance = Callable[[], object]
"""Called after every episode."""


class ProgressBar(Protocol):
    """As much of tqdm's as is needed."""

    def update(self, n: float = 1) -> object:
        """So many episodes are done."""
        ...


Progress = Callable[[int], AbstractContextManager[ProgressBar]]
"""Opens a progress bar for so many episodes, when the first of them is about to begin."""


class _NoBar:
    def update(self, n: float = 1) -> None:
        """No progress bar."""


def no_progress(episodes: int) -> AbstractContextManager[ProgressBar]:
    """No progress bar."""
    return nullcontext(_NoBar())


@dataclass(frozen=True)
class Agent:
    """Plays demonstration episodes by their numbers."""

    name: str
    """With its state: two players of one name play alike."""
    play: Callable[[Sequence[int], Advance], list[Trajectory]]
    close: Callable[[], None]


def is_scripted(policy: str) -> bool:
    """Whether `--policy` names a scripted policy: expert, random, data or data:SKILL."""
    return policy in ("expert", "random", _DATA) or policy.startswith(f"{_DATA}:")


def scripted_agent(
    policy: str, environment: EnvironmentConfig, prompt: PromptConfig, *, seed: int
) -> Agent:
    """The environment's expert, the random policy, or the environment's data policy.

    Raises:
        ConfigError: a data policy that this environment does not have.
    """
    if policy not in ("expert", "random"):
        return _data_agent(policy, environment, prompt, seed=seed)
    task = open_task(environment, prompt, default_image_size=None)
    if policy == "expert":
        task.require_expert()

    def play_all(episodes: Sequence[int], advance: Advance) -> list[Trajectory]:
        # The random policy has draws of its own for every file, so that one can be played alone.
        randomness = completion_seed(seed, episodes[0], 0)
        respond = (
            expert_response(prompt.format) if policy == "expert" else random_response(randomness)
        )
        seeds = (episode_seed(Split.DEMONSTRATION, seed, number) for number in episodes)
        return _counted(play(task.id, task.factory, task.prompter, respond, seeds), advance)

    return Agent(policy, play_all, _nothing_to_close)


def _data_agent(
    policy: str, environment: EnvironmentConfig, prompt: PromptConfig, *, seed: int
) -> Agent:
    """Each episode's draws depend on its number alone, not on the file that it is in."""
    task = open_task(environment, prompt, default_image_size=None)
    skill = _checked_skill(policy, task)

    def play_all(episodes: Sequence[int], advance: Advance) -> list[Trajectory]:
        respond = DataResponse(skill, prompt.format)

        def seeds() -> Iterator[int]:
            for number in episodes:
                respond.begin(completion_seed(seed, number, 0))
                yield episode_seed(Split.DEMONSTRATION, seed, number)

        return _counted(play(task.id, task.factory, task.prompter, respond, seeds()), advance)

    return Agent(f"{_DATA}:{skill:g}", play_all, _nothing_to_close)


def _counted(played: Iterable[Trajectory], advance: Advance) -> list[Trajectory]:
    trajectories: list[Trajectory] = []
    for trajectory in played:
        trajectories.append(trajectory)
        advance()
    return trajectories


def _nothing_to_close() -> None:
    """Scripted play closes its environment itself."""


def _checked_skill(policy: str, task: Task) -> float:
    """Skill of the environment's data policy, which has it.

    Raises:
        ConfigError: the environment has none, or none with this skill.
    """
    instance = task.factory()
    try:
        if not isinstance(instance, WithDataPolicy):
            raise ConfigError(f"policy is {policy!r} — {task.id} has none: expert or random")
        skill = _skill(policy, default=instance.data_skill)
        instance.data_policy(skill, np.random.Generator(np.random.Philox(key=0)))
        return skill
    finally:
        instance.close()


def _skill(policy: str, *, default: float) -> float:
    """Skill of "data" or "data:SKILL"."""
    _, colon, text = policy.partition(":")
    try:
        return float(text) if colon else default
    except ValueError:
        raise ConfigError(f"policy is {policy!r} — expected data or data:NUMBER") from None


def model_agent(
    source: Source,
    environment: EnvironmentConfig,
    prompt: PromptConfig,
    *,
    seed: int,
    sampling: SamplingConfig,
    slots: int,
    threads: int | None,
    api: ApiConfig,
) -> Agent:
    """A model, in several episodes at the same time."""
    load_quietly(threads=threads)
    policy, task = open_agent(source, environment, prompt, slots=slots, api=api)
    runner = task.runner(slots, environment.workers)

    def play_all(episodes: Sequence[int], advance: Advance) -> list[Trajectory]:
        collector = Collector(
            environment_id=task.id,
            runner=runner,
            policy=RememberingPolicy(policy),
            prompter=task.prompter,
            sampling=sampling,
            split=Split.DEMONSTRATION,
            run_seed=seed,
            on_episode=advance,
        )
        return collector.collect_episodes(episodes).trajectories

    def close() -> None:
        runner.close()
        close_api(policy, api)

    return Agent(source.model, play_all, close)
