"""A data set in numbers: how much, how good, how long, and in which range its returns lie.

Everything is counted in one pass, trajectory by trajectory: data may be larger than memory.
"""

import json
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from forethought.evaluation.statistics import Interval, bootstrap_interval, wilson_interval
from forethought.rollouts.store import find_shards, read_shards
from forethought.targets.reward_map import RewardMap, read_reward_map, returns_to_go
from forethought.types import Trajectory


class Distribution(NamedTuple):
    """Values that occur, and how often; sorted, each value once."""

    values_K: NDArray[np.float64]
    counts_K: NDArray[np.int64]
    """Above 0."""

    @property
    def total(self) -> int:
        """How many numbers there are."""
        return int(self.counts_K.sum())

    @property
    def mean(self) -> float:
        """NaN where there is no number."""
        return float(self.values_K @ self.counts_K) / self.total if self.total else float("nan")

    @property
    def lowest(self) -> float:
        return float(self.values_K[0])

    @property
    def highest(self) -> float:
        return float(self.values_K[-1])

    def quantile(self, share: float) -> float:
        """The smallest value that at least this share of the numbers does not exceed.

        Args:
            share: in (0, 1].
        """
        reached_K = np.cumsum(self.counts_K) >= share * self.total
        return float(self.values_K[int(np.argmax(reached_K))])


class Numbers:
    """Numbers that are counted one by one, in 8 bytes each."""

    def __init__(self) -> None:
        self._numbers = array("d")

    def add(self, number: float) -> None:
        """Counts one more."""
        self._numbers.append(number)

    def numpy(self) -> NDArray[np.float64]:
        """All of them, in the order in which they were counted."""
        return np.array(self._numbers, dtype=np.float64)

    def distribution(self) -> Distribution:
        """Sorted and counted."""
        values_K, counts_K = np.unique(self.numpy(), return_counts=True)
        return Distribution(values_K, counts_K.astype(np.int64))


DESCRIPTION_VERSION = 1
QUANTILES = (0.1, 0.5, 0.9)

_Number = TypeVar("_Number", int, float)
_RESAMPLES = 1000
"""A data set may have very many episodes, and this is only to be glanced at."""


@dataclass(frozen=True, eq=False)
class TaskDescription:
    """One kind of task, or all of them.

    Success, returns and lengths are those of whole episodes; parts of episodes, as training
    cuts them, and episodes that the environment lost count nowhere but in `parts`, `lost`
    and the numbers of single steps.
    """

    task_type: str | None
    """None: all kinds together."""
    episodes: int
    """Whole ones: from the first step to the end."""
    parts: int
    """Trajectories that begin later or do not reach the end."""
    lost: int
    """To a crash or timeout of the environment."""
    steps: int
    invalid: int
    """Steps whose answer named no valid action."""
    randomized: int
    """Part of these, steps whose action was drawn instead."""
    successes: int
    success_interval: Interval | None
    """95 %, Wilson; None where there is no episode."""
    return_interval: Interval | None
    """95 %, bootstrap, of the mean."""
    returns: Distribution
    """Undiscounted sums of rewards, per episode."""
    episode_steps: Distribution
    rewards: Distribution
    """Per step."""
    prompt_tokens: Distribution
    """Per step; empty where text was never tokenized, as scripted agents leave it."""
    completion_tokens: Distribution
    """Per step, likewise."""
    completion_characters: Distribution
    """Per step."""

    @property
    def success_rate(self) -> float | None:
        return self.successes / self.episodes if self.episodes else None

    @property
    def invalid_rate(self) -> float | None:
        return self.invalid / self.steps if self.steps else None

    @property
    def mean_return(self) -> float | None:
        return self.returns.mean if self.episodes else None


@dataclass(frozen=True, eq=False)
class Description:
    """A data set."""

    source: str
    environment_ids: tuple[str, ...]
    """Sorted."""
    shards: int
    bytes: int
    seeds: int
    """Different starts: pairs of environment and seed."""
    images: int
    """Steps whose prompt has one."""
    policy_versions: tuple[int, int] | None
    """Fewest and most updates that an acting policy had seen; None without steps."""
    whole: TaskDescription
    tasks: tuple[TaskDescription, ...]
    """One per kind of task, sorted; empty where there is only one kind."""
    gamma: float
    """Discount per step, of the two ranges below."""
    returns_to_go: tuple[float, float] | None
    """Lowest and highest discounted sum of rewards from any step on; None without steps."""
    reward_map: RewardMap | None
    """What the folder declares; None where it declares none."""


class _Tally:
    """What is counted of one kind of task."""

    def __init__(self) -> None:
        self.parts = self.lost = self.steps = self.invalid = self.randomized = self.successes = 0
        self.returns, self.episode_steps, self.rewards = Numbers(), Numbers(), Numbers()
        self.prompt_tokens, self.completion_tokens = Numbers(), Numbers()
        self.completion_characters = Numbers()

    def add(self, trajectory: Trajectory) -> None:
        self._add_steps(trajectory)
        if trajectory.failure is not None:
            self.lost += 1
        elif trajectory.first_step == 0 and trajectory.is_finished:
            self.successes += trajectory.success
            self.returns.add(trajectory.total_reward)
            self.episode_steps.add(len(trajectory.steps))
        else:
            self.parts += 1

    def _add_steps(self, trajectory: Trajectory) -> None:
        for step in trajectory.steps:
            self.steps += 1
            self.invalid += not step.action.is_valid
            self.randomized += step.action.was_randomized
            self.rewards.add(step.reward)
            self.completion_characters.add(len(step.completion.text))
            if step.prompt.token_ids:
                self.prompt_tokens.add(len(step.prompt.token_ids))
            if step.completion.token_ids:
                self.completion_tokens.add(len(step.completion.token_ids))

    def described(self, task_type: str | None) -> TaskDescription:
        returns = self.returns.distribution()
        episodes = returns.total
        randomness = np.random.default_rng(0)
        return TaskDescription(
            task_type=task_type,
            episodes=episodes,
            parts=self.parts,
            lost=self.lost,
            steps=self.steps,
            invalid=self.invalid,
            randomized=self.randomized,
            successes=self.successes,
            success_interval=wilson_interval(self.successes, episodes) if episodes else None,
            return_interval=(
                bootstrap_interval(self.returns.numpy().tolist(), randomness, resamples=_RESAMPLES)
                if episodes
                else None
            ),
            returns=returns,
            episode_steps=self.episode_steps.distribution(),
            rewards=self.rewards.distribution(),
            prompt_tokens=self.prompt_tokens.distribution(),
            completion_tokens=self.completion_tokens.distribution(),
            completion_characters=self.completion_characters.distribution(),
        )


def describe(source: Path, *, gamma: float) -> Description:
    """Reads a data set once and counts.

    Args:
        source: a shard, or a folder of shards.
        gamma: γ in [0, 1], per environment step, of the returns-to-go.

    Raises:
        StorageError: there is no such data set, or a shard is refused (see `read_shards`).
        ConfigError: the declared reward map is none.
        ValueError: γ outside [0, 1].
    """
    paths = find_shards(source)
    tallies: dict[str, _Tally] = {}
    whole, survey = _Tally(), _Survey(gamma)
    for trajectory in read_shards(source):
        whole.add(trajectory)
        tallies.setdefault(trajectory.task_type, _Tally()).add(trajectory)
        survey.add(trajectory)
    tasks = [tally.described(task_type) for task_type, tally in sorted(tallies.items())]
    return Description(
        source=str(source),
        environment_ids=tuple(sorted(survey.environment_ids)),
        shards=len(paths),
        bytes=sum(path.stat().st_size for path in paths),
        seeds=len(survey.starts),
        images=survey.images,
        policy_versions=_ends(survey.policy_versions),
        whole=whole.described(None),
        tasks=tuple(tasks) if len(tasks) > 1 else (),
        gamma=gamma,
        returns_to_go=_ends(survey.returns_to_go),
        reward_map=read_reward_map(paths[0].parent),
    )


class _Survey:
    """What is counted over all kinds of tasks alone."""

    def __init__(self, gamma: float) -> None:
        self.environment_ids: set[str] = set()
        self.starts: set[tuple[str, int]] = set()
        self.images = 0
        self.policy_versions: set[int] = set()
        self.returns_to_go: set[float] = set()
        """The lowest and the highest so far."""
        self._gamma = gamma

    def add(self, trajectory: Trajectory) -> None:
        self.environment_ids.add(trajectory.environment_id)
        self.starts.add((trajectory.environment_id, trajectory.seed))
        self.images += sum(bool(step.prompt.images) for step in trajectory.steps)
        self.policy_versions.update(step.policy_version for step in trajectory.steps)
        if trajectory.steps and trajectory.failure is None:
            returns_T = returns_to_go(trajectory.earned, gamma=self._gamma)
            ends = (*self.returns_to_go, float(returns_T.min()), float(returns_T.max()))
            self.returns_to_go = {min(ends), max(ends)}


def _ends(numbers: Iterable[_Number]) -> tuple[_Number, _Number] | None:
    found = list(numbers)
    return (min(found), max(found)) if found else None


def to_json(description: Description) -> str:
    """For programs: the keys are stable within a `description_version`. What does not exist
    is null."""
    reward_map, span = description.reward_map, description.returns_to_go
    content = {
        "description_version": DESCRIPTION_VERSION,
        "source": description.source,
        "environment_ids": description.environment_ids,
        "shards": description.shards,
        "bytes": description.bytes,
        "seeds": description.seeds,
        "steps_with_image": description.images,
        "policy_versions": description.policy_versions,
        "gamma": description.gamma,
        "returns_to_go": span,
        "reward_map": None if reward_map is None else [reward_map.lowest, reward_map.highest],
        **_task_json(description.whole),
        "tasks": {task.task_type: _task_json(task) for task in description.tasks},
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _task_json(task: TaskDescription) -> dict[str, object]:
    return {
        "episodes": task.episodes,
        "parts": task.parts,
        "lost": task.lost,
        "steps": task.steps,
        "success_rate": task.success_rate,
        "success_interval": task.success_interval,
        "mean_return": task.mean_return,
        "return_interval": task.return_interval,
        "invalid_rate": task.invalid_rate,
        "randomized_steps": task.randomized,
        "return": _distribution_json(task.returns),
        "episode_steps": _distribution_json(task.episode_steps),
        "reward": _distribution_json(task.rewards),
        "prompt_tokens": _distribution_json(task.prompt_tokens),
        "completion_tokens": _distribution_json(task.completion_tokens),
        "completion_characters": _distribution_json(task.completion_characters),
    }


def _distribution_json(numbers: Distribution) -> dict[str, float] | None:
    if not numbers.total:
        return None
    quantiles = {f"q{share:.0%}".rstrip("%"): numbers.quantile(share) for share in QUANTILES}
    return {
        "count": numbers.total,
        "mean": numbers.mean,
        "lowest": numbers.lowest,
        **quantiles,
        "highest": numbers.highest,
    }
