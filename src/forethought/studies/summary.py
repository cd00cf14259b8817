"""One line of the table: a stage of a row, over its seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean, stdev

from forethought.evaluation.results import Evaluation, EvaluationRow
from forethought.evaluation.statistics import Interval, wilson_interval
from forethought.studies.cells import Plan
from forethought.studies.records import Outcome


@dataclass(frozen=True)
class Pool:
    """The episodes of several seeds as if they were one evaluation's."""

    seeds: int
    """That were judged."""
    episodes: int
    successes: int
    success_interval: Interval
    """95 %, Wilson, over all episodes: the luck of episodes, not that of seeds."""
    seed_mean: float
    """Of the success rates."""
    seed_deviation: float | None
    """Sample standard deviation of the success rates; None for a single seed."""
    seed_range: Interval
    """Lowest and highest success rate."""
    mean_return: float
    return_interval: Interval | None
    """95 %, of the luck of episodes: the seeds' own intervals, put together as those of
    independent normal means. None where one of them has none."""
    invalid_rate: float
    """Share of all steps."""

    @property
    def success_rate(self) -> float:
        return self.successes / self.episodes


@dataclass(frozen=True)
class StageSummary:
    """A stage of a row."""

    row: str
    number: int
    """From 1."""
    is_last: bool
    algorithm: str
    outcomes: tuple[Outcome, ...]
    """By seed."""
    pool: Pool | None
    """None where no seed was judged."""
    also: tuple[Pool | None, ...]
    """The same in each of the study's variants of the world."""

    @property
    def seconds(self) -> float:
        """Of training, all seeds together."""
        return fsum(outcome.seconds or 0.0 for outcome in self.outcomes)


@dataclass(frozen=True)
class Reference:
    """What chance, the expert and any policy at all reach on the same episodes."""

    world: str
    """With its options: what makes episodes comparable."""
    random: EvaluationRow
    expert: EvaluationRow
    ceiling: EvaluationRow


@dataclass(frozen=True)
class Summary:
    """Everything that the table says."""

    plan: Plan
    stages: tuple[StageSummary, ...]
    """Row by row."""
    references: tuple[Reference, ...]
    """One for each world."""
    outcomes: tuple[Outcome, ...]
    """Each cell once, in the order in which they are run."""

    @property
    def seconds(self) -> float:
        """Of training, in all; what rows share counts once."""
        return fsum(outcome.seconds or 0.0 for outcome in self.outcomes)


def summarize(plan: Plan, outcomes: Sequence[Outcome]) -> Summary:
    """Puts the rows together.

    Args:
        outcomes: one for each cell of the plan.
    """
    outcome_of = {outcome.cell: outcome for outcome in outcomes}
    stages = tuple(
        _stage(row.name, number, row.stages, [outcome_of[cell] for cell in row.stage(number)])
        for row in plan.rows
        for number in range(row.stages)
    )
    return Summary(plan, stages, _references(plan, outcomes), tuple(outcomes))


def pool(rows: Sequence[EvaluationRow]) -> Pool | None:
    """Episodes of several evaluations together; None where none was played to its end."""
    judged = [row for row in rows if row.episodes]
    if not judged:
        return None
    episodes = sum(row.episodes or 0 for row in judged)
    successes = sum(round((row.success_rate or 0.0) * (row.episodes or 0)) for row in judged)
    returns = fsum((row.mean_return or 0.0) * (row.episodes or 0) for row in judged)
    steps = [(row.mean_episode_steps or 0.0) * (row.episodes or 0) for row in judged]
    invalid = fsum((row.invalid_rate or 0.0) * n for row, n in zip(judged, steps, strict=True))
    rates = [row.success_rate or 0.0 for row in judged]
    return Pool(
        seeds=len(judged),
        episodes=episodes,
        successes=successes,
        success_interval=wilson_interval(successes, episodes),
        seed_mean=fmean(rates),
        seed_deviation=stdev(rates) if len(rates) > 1 else None,
        seed_range=Interval(min(rates), max(rates)),
        mean_return=returns / episodes,
        return_interval=_pooled_interval(judged, returns / episodes, episodes),
        invalid_rate=invalid / fsum(steps),
    )


def _pooled_interval(rows: Sequence[EvaluationRow], mean: float, episodes: int) -> Interval | None:
    if len(rows) == 1:
        return rows[0].return_interval
    squares = 0.0
    for row in rows:
        if row.return_interval is None:
            return None
        low, high = row.return_interval
        squares += ((row.episodes or 0) / episodes * (high - low) / 2) ** 2
    radius = math.sqrt(squares)
    return Interval(mean - radius, mean + radius)


def _stage(row: str, number: int, stages: int, outcomes: list[Outcome]) -> StageSummary:
    judged = [outcome.evaluation.policy for outcome in outcomes if outcome.evaluation]
    algorithm = outcomes[0].cell.algorithm
    is_last = number + 1 == stages
    variants = zip(*(outcome.also for outcome in outcomes), strict=True)
    also = tuple(pool([found.policy for found in each if found]) for each in variants)
    return StageSummary(row, number + 1, is_last, algorithm, tuple(outcomes), pool(judged), also)


def _references(plan: Plan, outcomes: Sequence[Outcome]) -> tuple[Reference, ...]:
    found: dict[str, Reference] = {}
    for outcome in outcomes:
        options = outcome.cell.config.environment.options
        variants = [options, *(judging.applied(options) for judging in plan.also_judged)]
        for each, evaluation in zip(variants, (outcome.evaluation, *outcome.also), strict=True):
            if evaluation is not None:
                world = " ".join([evaluation.environment_id, *sorted(each)])
                found.setdefault(world, _reference(world, evaluation))
    return tuple(found.values())


def _reference(world: str, evaluation: Evaluation) -> Reference:
    return Reference(world, evaluation.random, evaluation.expert, evaluation.ceiling)
