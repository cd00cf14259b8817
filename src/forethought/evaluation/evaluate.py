"""Evaluation: a policy on held-out episodes, with random policy, expert and ceiling."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, NamedTuple

import numpy as np

from forethought.configs.parts import Inline, ResponseFormat, SamplingConfig, require
from forethought.evaluation.results import Evaluation, EvaluationRow, SeedRange, summarize
from forethought.evaluation.statistics import ThoughtRates
from forethought.generation.contract import Policy
from forethought.generation.remembering import RememberingPolicy
from forethought.rollouts.collector import Collector
from forethought.rollouts.scripted import Respond, expert_response, play, random_response
from forethought.rollouts.seeding import Split, episode_seed
from forethought.rollouts.task import Task
from forethought.types import Trajectory

BOOTSTRAP_SEED = 0
"""Intervals of equal results are equal."""


class ScriptedRows:
    """The rows of those who play without a model, on held-out episodes.

    They are the same whoever is judged beside them: one of these, kept while many are
    judged, plays each row once.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[object, ...], EvaluationRow] = {}

    def random(self, task: Task, episodes: int, *, seed: int) -> EvaluationRow:
        """Actions drawn uniformly. It has no thoughts that could be true.

        Args:
            seed: of the draws.
        """
        return self._row("random", task, episodes, seed, random_response(seed))

    def expert(self, task: Task, episodes: int, response_format: ResponseFormat) -> EvaluationRow:
        """The environment's own expert; a row without numbers where it has none."""
        if not task.has_expert:
            return EvaluationRow("expert")
        return self._row(
            "expert", task, episodes, response_format, expert_response(response_format)
        )

    def _row(
        self, name: str, task: Task, episodes: int, manner: object, respond: Respond
    ) -> EvaluationRow:
        key = (name, task.id, task.options, episodes, manner)
        if key not in self._rows:
            row = _played(name, task, episodes, respond)
            thinks = name != "random"
            self._rows[key] = row if thinks else replace(row, thoughts=ThoughtRates())
        return self._rows[key]


def row_of(name: str, trajectories: list[Trajectory]) -> EvaluationRow:
    """One row of a table, with intervals."""
    return summarize(name, trajectories, np.random.default_rng(BOOTSTRAP_SEED))


def _played(name: str, task: Task, episodes: int, respond: Respond) -> EvaluationRow:
    seeds = (episode_seed(Split.EVALUATION, 0, index) for index in range(episodes))
    return row_of(name, list(play(task.id, task.factory, task.prompter, respond, seeds)))


@dataclass(frozen=True)
class EvaluationSettings:
    """How a policy is judged."""

    episodes: int = 500
    """Held-out episodes; their seeds are the same for every policy, and never trained on. No more
    than the environment has different ones (ALFWorld: one for each game of the split)."""

    sampling: Annotated[SamplingConfig, Inline()] = field(
        default_factory=lambda: SamplingConfig(temperature=0.0)
    )

    num_envs: int = 64
    """Episodes played at the same time."""

    seed: int = 0
    """Seed of the sampled responses and random actions, not of the episodes."""

    def __post_init__(self) -> None:
        require(self.episodes >= 1, "episodes", self.episodes, "1 or more")
        require(self.num_envs >= 1, "num_envs", self.num_envs, "1 or more")
        require(0 <= self.seed < 2**31, "seed", self.seed, "0 to 2147483647")


class Evaluated(NamedTuple):
    evaluation: Evaluation
    trajectories: list[Trajectory]
    """The policy's own episodes, in the order of their seeds."""


def evaluate(
    policy: Policy,
    task: Task,
    settings: EvaluationSettings,
    *,
    checkpoint: str | None,
    response_format: ResponseFormat = "thoughts",
    scripted: ScriptedRows | None = None,
    workers: int = 0,
    on_episode: Callable[[], object] | None = None,
) -> Evaluated:
    """Plays the held-out episodes with the policy, at random, and with the expert.

    A completion without a valid action gets what the environment gives for it, never a draw.

    Args:
        checkpoint: which state of the policy this is, for the record.
        scripted: rows of random policy and expert that were played before.
        workers: processes that host the policy's environments; 0: this one.
        on_episode: called after every episode of the policy, for a progress bar.
    """
    scripted = scripted or ScriptedRows()
    trajectories = play_policy(policy, task, settings, workers=workers, on_episode=on_episode)
    first = episode_seed(Split.EVALUATION, settings.seed, 0)
    evaluation = Evaluation(
        environment_id=task.id,
        seed_range=SeedRange(first, first + settings.episodes),
        checkpoint=checkpoint,
        temperature=settings.sampling.temperature,
        holds_actions=settings.sampling.constrain_actions,
        policy=row_of("policy", trajectories),
        random=scripted.random(task, settings.episodes, seed=settings.seed),
        expert=scripted.expert(task, settings.episodes, response_format),
        ceiling=EvaluationRow("ceiling", success_rate=task.ceiling_rate),
    )
    return Evaluated(evaluation, trajectories)


def require_different(task: Task, episodes: int) -> None:
    """Refuses to count an episode twice: intervals would be narrower than what is known.

    Raises:
        ConfigError: the environment has fewer different held-out episodes.
    """
    most = task.held_out_episodes
    require(
        most is None or episodes <= most,
        "episodes",
        episodes,
        f"{most} at most: {task.id} has no more different held-out ones",
    )


def play_policy(
    policy: Policy,
    task: Task,
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
        ConfigError: the environment has fewer different held-out episodes.
    """
    if split is Split.EVALUATION:
        require_different(task, settings.episodes)
    slots = min(settings.num_envs, settings.episodes)
    with task.runner(slots, workers) as runner:
        collector = Collector(
            environment_id=task.id,
            runner=runner,
            policy=RememberingPolicy(policy),
            prompter=task.prompter,
            sampling=settings.sampling,
            split=split,
            run_seed=settings.seed,
            on_episode=on_episode,
        )
        return collector.collect_episodes(range(settings.episodes)).trajectories
