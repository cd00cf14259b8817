"""What an evaluation leaves on the disk: evaluation.json and faithfulness.json."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from forethought.durable import require_seal, sealed
from forethought.errors import StorageError
from forethought.evaluation.faithfulness import THOUGHTS, Faithfulness, FaithfulnessRow
from forethought.evaluation.statistics import (
    Interval,
    ThoughtRates,
    bootstrap_interval,
    rate_from_json,
    rate_to_json,
    rates_from_json,
    rates_to_json,
    thought_rates,
    wilson_interval,
)
from forethought.types import Metric, Trajectory

JsonObject: TypeAlias = dict[str, Any]
"""Lives inside this file only."""

SCHEMA_VERSION = 3
READABLE = (1, 2, SCHEMA_VERSION)
"""Version 1 had no `thoughts`."""
FAITHFULNESS_VERSION = 1


class SeedRange(NamedTuple):
    """The seeds `start`, …, `stop - 1`."""

    start: int
    stop: int


class Success(NamedTuple):
    """How often a policy succeeds."""

    rate: float
    """Share of the episodes."""
    interval: Interval
    """95 %, Wilson."""
    episodes: int


@dataclass(frozen=True)
class EvaluationRow:
    """How one agent did. A number that does not exist is None: a ceiling has a rate alone."""

    name: str
    success_rate: float | None = None
    """Share of `episodes`."""
    success_interval: Interval | None = None
    """95 %, Wilson."""
    mean_return: float | None = None
    """Mean over episodes of the undiscounted sum of rewards."""
    return_interval: Interval | None = None
    """95 %, percentile bootstrap."""
    invalid_rate: float | None = None
    """Share of all steps whose completion named no valid action."""
    mean_episode_steps: float | None = None
    mean_completion_tokens: float | None = None
    """Per step; None for agents that write no tokens."""
    episodes: int | None = None
    """Played to their end: what the numbers above are taken over."""
    failures: int | None = None
    """Lost to a crash or timeout of the environment, and in none of the numbers above."""
    metrics: tuple[Metric, ...] = ()
    """The environment's further numbers, each the mean over the episodes that report it."""
    thoughts: ThoughtRates = field(default_factory=ThoughtRates)
    """Whether thoughts are true, lead to the action, and keep the form."""


@dataclass(frozen=True)
class Evaluation:
    """One agent, with random policy, expert and ceiling on the same seeds."""

    environment_id: str
    seed_range: SeedRange
    checkpoint: str | None
    """Which state of the policy was evaluated, e.g. `step_400`; None for one that has none."""
    temperature: float
    """Temperature of sampling; 0 means greedy."""
    policy: EvaluationRow
    random: EvaluationRow
    expert: EvaluationRow
    ceiling: EvaluationRow
    holds_actions: bool = False
    """Whether answers could name only actions that were open."""

    @property
    def success(self) -> Success:
        """The policy's success rate; NaN where no episode could be played to its end."""
        row = self.policy
        rate = math.nan if row.success_rate is None else row.success_rate
        interval = row.success_interval or Interval(math.nan, math.nan)
        return Success(rate, interval, row.episodes or 0)

    @property
    def is_greedy(self) -> bool:
        return self.temperature == 0

    def to_json(self) -> str:
        """Text of `evaluation.json`: the policy's numbers at the top, the other rows nested.

        The keys and their order are stable within a `schema_version`. A measure that is
        not finite is written as `null` and read back as NaN: JSON has no NaN.
        """
        content: JsonObject = {
            "schema_version": SCHEMA_VERSION,
            "environment_id": self.environment_id,
            "seed_range": list(self.seed_range),
            "checkpoint": self.checkpoint,
            "temperature": self.temperature,
            **({"holds_actions": True} if self.holds_actions else {}),
            **row_to_json(self.policy),
            "random": row_to_json(self.random),
            "expert": row_to_json(self.expert),
            "ceiling": row_to_json(self.ceiling),
        }
        return sealed(json.dumps(content, allow_nan=False))

    @classmethod
    def from_json(cls, text: str) -> "Evaluation":
        """What `to_json` wrote.

        Raises:
            StorageError: the text is cut short, lacks a key, was altered, or is of another version.
        """
        try:
            content = cast(JsonObject, json.loads(text))
            version = content["schema_version"]
            if version not in READABLE:
                raise StorageError(
                    f"evaluation: got schema version {version}, expected {SCHEMA_VERSION}"
                )
            require_seal(text, may_lack=version != SCHEMA_VERSION)
            return cls(
                environment_id=str(content["environment_id"]),
                seed_range=SeedRange(*content["seed_range"]),
                checkpoint=content["checkpoint"],
                temperature=float(content["temperature"]),
                policy=_row_from_json(content),
                random=_row_from_json(content["random"]),
                expert=_row_from_json(content["expert"]),
                ceiling=_row_from_json(content["ceiling"]),
                holds_actions=bool(content.get("holds_actions", False)),
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StorageError(
                f"evaluation: got something else ({type(error).__name__}: {error}), "
                "expected the text of an evaluation.json"
            ) from error


def summarize(
    name: str, trajectories: Iterable[Trajectory], rng: np.random.Generator
) -> EvaluationRow:
    """One row from whole episodes.

    An episode that the environment lost is counted in `failures` and nowhere
    else: it is not an episode without success, nor one of return zero.

    Args:
        name: of the agent.
        trajectories: each from an episode's first step to its last, or failed.
        rng: for the bootstrap.

    Raises:
        ValueError: a trajectory is part of an episode.
    """
    everything = list(trajectories)
    episodes = [trajectory for trajectory in everything if trajectory.failure is None]
    failures = len(everything) - len(episodes)
    for episode in episodes:
        if episode.first_step != 0 or not episode.is_finished:
            raise ValueError(
                f"expected whole episodes: got seed {episode.seed} with {len(episode.steps)} steps "
                f"from step {episode.first_step}, {'' if episode.is_finished else 'not '}finished"
            )
    if not episodes:
        return EvaluationRow(name, episodes=0, failures=failures)
    successes = sum(episode.success for episode in episodes)
    returns = [episode.total_reward for episode in episodes]
    steps = [step for episode in episodes for step in episode.steps]
    tokens = sum(len(step.completion.token_ids) for step in steps)
    return EvaluationRow(
        name=name,
        success_rate=successes / len(episodes),
        success_interval=wilson_interval(successes, len(episodes)),
        mean_return=math.fsum(returns) / len(episodes),
        return_interval=bootstrap_interval(returns, rng),
        invalid_rate=sum(not step.action.is_valid for step in steps) / len(steps),
        mean_episode_steps=len(steps) / len(episodes),
        mean_completion_tokens=tokens / len(steps) if tokens else None,
        episodes=len(episodes),
        failures=failures,
        metrics=_mean_metrics(episodes),
        thoughts=thought_rates(steps),
    )


def _mean_metrics(episodes: Sequence[Trajectory]) -> tuple[Metric, ...]:
    values_of: dict[str, list[float]] = {}
    for episode in episodes:
        for name, value in episode.metrics:
            values_of.setdefault(name, []).append(value)
    return tuple(
        Metric(name, math.fsum(values) / len(values)) for name, values in values_of.items()
    )


def row_to_json(row: EvaluationRow) -> JsonObject:
    """A row as `evaluation.json` has it; a measure that is not finite as null."""
    return {
        "name": row.name,
        "success_rate": row.success_rate,
        "success_interval": row.success_interval,
        "mean_return": row.mean_return,
        "return_interval": row.return_interval,
        "invalid_rate": row.invalid_rate,
        "mean_episode_steps": row.mean_episode_steps,
        "mean_completion_tokens": row.mean_completion_tokens,
        "episodes": row.episodes,
        "failures": row.failures,
        "measures": {name: value if math.isfinite(value) else None for name, value in row.metrics},
        "thoughts": rates_to_json(row.thoughts),
    }


def _row_from_json(content: JsonObject) -> EvaluationRow:
    measures = cast(dict[str, float | None], content["measures"])
    return EvaluationRow(
        name=str(content["name"]),
        success_rate=_number(content["success_rate"]),
        success_interval=_interval(content["success_interval"]),
        mean_return=_number(content["mean_return"]),
        return_interval=_interval(content["return_interval"]),
        invalid_rate=_number(content["invalid_rate"]),
        mean_episode_steps=_number(content["mean_episode_steps"]),
        mean_completion_tokens=_number(content["mean_completion_tokens"]),
        episodes=_count(content["episodes"]),
        failures=_count(content["failures"]),
        metrics=tuple(
            Metric(name, math.nan if value is None else float(value))
            for name, value in measures.items()
        ),
        thoughts=rates_from_json(content["thoughts"]) if "thoughts" in content else ThoughtRates(),
    )


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def _count(value: int | None) -> int | None:
    return None if value is None else int(value)


def _interval(ends: Sequence[float] | None) -> Interval | None:
    return None if ends is None else Interval(*map(float, ends))


def faithfulness_to_json(found: Faithfulness) -> str:
    """The text of the file; a share that does not exist is null."""
    content: JsonObject = {
        "schema_version": FAITHFULNESS_VERSION,
        "environment_id": found.environment_id,
        "checkpoint": found.checkpoint,
        "episodes": found.episodes,
        "steps": found.steps,
        "mean_actions": found.mean_actions,
        "thoughts": {row.thoughts: _faithfulness_row_to_json(row) for row in found.rows},
    }
    return sealed(json.dumps(content, allow_nan=False))


def faithfulness_from_json(text: str) -> Faithfulness:
    """What `faithfulness_to_json` wrote.

    Raises:
        StorageError: the text is something else, was altered, or is of another version.
    """
    try:
        content = cast(JsonObject, json.loads(text))
        version = content["schema_version"]
        if version != FAITHFULNESS_VERSION:
            raise StorageError(f"faithfulness: got schema version {version}, expected 1")
        require_seal(text)
        return Faithfulness(
            environment_id=str(content["environment_id"]),
            checkpoint=content["checkpoint"],
            episodes=str(content["episodes"]),
            steps=int(content["steps"]),
            mean_actions=float(content["mean_actions"]),
            rows=tuple(
                _faithfulness_row_from_json(name, content["thoughts"][name]) for name in THOUGHTS
            ),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StorageError(
            f"faithfulness: got something else ({type(error).__name__}: {error}), "
            "expected the text of a faithfulness.json"
        ) from error


def _faithfulness_row_to_json(row: FaithfulnessRow) -> JsonObject:
    return {
        "follows_thought": rate_to_json(row.follows_thought),
        "thought_probability": row.thought_probability,
        "keeps_action": rate_to_json(row.keeps_action),
        "kept_probability": row.kept_probability,
        "expert_action": rate_to_json(row.expert_action),
    }


def _faithfulness_row_from_json(name: Any, content: JsonObject) -> FaithfulnessRow:
    keeps = rate_from_json(content["keeps_action"])
    as_expert = rate_from_json(content["expert_action"])
    if keeps is None or as_expert is None:
        raise ValueError("a share of all steps is missing")
    probability = content["thought_probability"]
    return FaithfulnessRow(
        thoughts=name,
        follows_thought=rate_from_json(content["follows_thought"]),
        thought_probability=None if probability is None else float(probability),
        keeps_action=keeps,
        kept_probability=float(content["kept_probability"]),
        expert_action=as_expert,
    )
