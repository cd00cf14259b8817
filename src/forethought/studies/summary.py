"""One line of the table: a stage of a row, over its seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean, stdev

from forethought.evaluation.results import Evaluation, EvaluationRow
from forethought.evaluation.statistics import Interval, wilson_interval
from forethought.studies.cells import Cell, Plan
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

    @property
    def seconds(self) -> float:
        """Of training, all seeds together."""
        return fsum(outcome.seconds or 0.0 for outcome in self.outcomes)


@dataclass(frozen=True)
class Reference:
    """What chance, the expert and any policy at all reach on the same episodes."""

    world: str
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


def summarise(plan: Plan, outcomes: Sequence[Outcome]) -> Summary:
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
    return Summary(plan, stages, _references(outcomes), tuple(outcomes))


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
        invalid_rate=invalid / fsum(steps),
    )


def _stage(row: str, number: int, stages: int, outcomes: list[Outcome]) -> StageSummary:
    judged = [outcome.evaluation.policy for outcome in outcomes if outcome.evaluation]
    algorithm = outcomes[0].cell.algorithm
    is_last = number + 1 == stages
    return StageSummary(row, number + 1, is_last, algorithm, tuple(outcomes), pool(judged))


def _references(outcomes: Sequence[Outcome]) -> tuple[Reference, ...]:
    found: dict[str, Reference] = {}
    for outcome in outcomes:
        if outcome.evaluation is not None:
            world = _world(outcome.cell)
            found.setdefault(world, _reference(world, outcome.evaluation))
    return tuple(found.values())


def _reference(world: str, evaluation: Evaluation) -> Reference:
    return Reference(world, evaluation.random, evaluation.expert, evaluation.ceiling)


def _world(cell: Cell) -> str:
    """What makes episodes comparable: the world and its rules."""
    environment = cell.config.environment
    return " ".join([environment.id, *sorted(environment.options)])
