"""How good is it? A policy on held-out episodes, beside chance, expert and ceiling."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from forethought.configs.parts import ResponseFormat, require
from forethought.evaluation.results import Evaluation, EvaluationRow, SeedRange
from forethought.evaluation.scripted_rows import ScriptedRows, row_of
from forethought.generation.contract import Policy
from forethought.generation.remembering import RememberingPolicy
from forethought.rollouts.collector import AnswerSettings, Collector
from forethought.rollouts.seeding import Split, episode_seed
from forethought.rollouts.task import Task
from forethought.types import Trajectory


@dataclass(frozen=True)
class EvaluationSettings:
    """How a policy is judged."""

    episodes: int = 500
    """Held-out episodes; their seeds are the same for every policy, and never trained on. No more
    than the world has different ones (ALFWorld: one for each game of the split)."""

    temperature: float = 0.0
    """0 takes the most likely token; above 0 samples."""

    max_new_tokens: int = 128
    """Longest answer."""

    constrain_actions: bool = False
    """Whether answers can name only actions that are open (`rollout.constrain_actions`)."""

    num_envs: int = 64
    """Episodes played at the same time."""

    seed: int = 0
    """Of the sampled answers and random actions, not of the episodes."""

    def __post_init__(self) -> None:
        require(self.episodes >= 1, "episodes", self.episodes, "1 or more")
        require(self.temperature >= 0, "temperature", self.temperature, "0 or more")
        require(self.max_new_tokens >= 1, "max_new_tokens", self.max_new_tokens, "1 or more")
        require(self.num_envs >= 1, "num_envs", self.num_envs, "1 or more")
        require(0 <= self.seed < 2**31, "seed", self.seed, "0 to 2147483647")


class Evaluated(NamedTuple):
    evaluation: Evaluation
    trajectories: list[Trajectory]
    """The policy's own episodes, in the order of their seeds."""


def evaluate(
    policy: Policy,
    world: Task,
    settings: EvaluationSettings,
    *,
    checkpoint: str | None,
    response_format: ResponseFormat = "thoughts",
    scripted: ScriptedRows | None = None,
    workers: int = 0,
    on_episode: Callable[[], object] | None = None,
) -> Evaluated:
    """Plays the held-out episodes with the policy, at random, and with the expert.

    An answer without a valid action gets what the world gives for it, never a lucky draw.

    Args:
        checkpoint: which state of the policy this is, for the record.
        scripted: chance and expert as they have played before, if they have.
        workers: processes that host the policy's environments; 0: this one.
        on_episode: called after every episode of the policy, for a progress bar.
    """
    scripted = scripted or ScriptedRows()
    trajectories = play_policy(policy, world, settings, workers=workers, on_episode=on_episode)
    first = episode_seed(Split.EVALUATION, settings.seed, 0)
    evaluation = Evaluation(
        environment_id=world.id,
        seed_range=SeedRange(first, first + settings.episodes),
        checkpoint=checkpoint,
        temperature=settings.temperature,
        holds_actions=settings.constrain_actions,
        policy=row_of("policy", trajectories),
        random=scripted.random(world, settings.episodes, seed=settings.seed),
        expert=scripted.expert(world, settings.episodes, response_format),
        ceiling=EvaluationRow("ceiling", success_rate=world.ceiling_rate),
    )
    return Evaluated(evaluation, trajectories)


def require_different(world: Task, episodes: int) -> None:
    """Refuses to count an episode twice: intervals would be narrower than what is known.

    Raises:
        ConfigError: the world has fewer different held-out episodes.
    """
    most = world.held_out_episodes
    require(
        most is None or episodes <= most,
        "episodes",
        episodes,
        f"{most} at most: {world.id} has no more different held-out ones",
    )


def play_policy(
    policy: Policy,
    world: Task,
    settings: EvaluationSettings,
    *,
    split: Split = Split.EVALUATION,
    workers: int = 0,
    on_episode: Callable[[], object] | None = None,
) -> list[Trajectory]:
    """The policy's episodes alone, in the order of their seeds.

    Args:
        split: whose seeds: the held-out ones, or others on which a setting may be chosen.

    Raises:
        ConfigError: the world has fewer different held-out episodes.
    """
    if split is Split.EVALUATION:
        require_different(world, settings.episodes)
    slots = min(settings.num_envs, settings.episodes)
    with world.runner(slots, workers) as runner:
        collector = Collector(
            environment_id=world.id,
            runner=runner,
            policy=RememberingPolicy(policy),
            prompter=world.prompter,
            settings=AnswerSettings(
                settings.max_new_tokens,
                settings.temperature,
                "penalize",
                settings.constrain_actions,
            ),
            split=split,
            run_seed=settings.seed,
            on_episode=on_episode,
        )
        return collector.collect_episodes(range(settings.episodes)).trajectories
