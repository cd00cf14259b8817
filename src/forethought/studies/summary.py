"""One line of the table: a stage of a row, over its seeds."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean, stdev

from forethought.evaluation.results import Evaluation, EvaluationRow
from forethought.evaluation.statistics import Interval, wilson_interval
from forethought.reports.markup import count, decimal
from forethought.studies.plan import Plan
from forethought.studies.running import Outcome, State


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


_NOTHING = "–"
_HEADER = (
    *("row", "after", "success of each seed, %", "of all episodes, % [95 %]"),
    *("mean ± s of seeds, %", "return [95 %]", "invalid, %", "seeds", "episodes"),
    "training, min",
)
_ALSO = ("success, % [95 %]", "return [95 %]")
"""Columns for each variant of the world."""
_CELLS_HEADER = ("cell", "rows", "state", "training, min", "")


def write_table(summary: Summary, plots: Sequence[str]) -> str:
    """The page.

    Args:
        plots: names of pictures that lie beside it.
    """
    parts = (_head(summary), _results(summary), _pictures(plots), _cells(summary))
    return "\n".join(line for part in parts for line in (*part, ""))


def _head(summary: Summary) -> Iterator[str]:
    plan, outcomes = summary.plan, summary.outcomes
    states = [outcome.state for outcome in outcomes]
    numbers = (f"{states.count(s)} {s}" for s in reversed(State) if states.count(s))
    yield f"# {plan.name}"
    yield ""
    yield (
        f"{count(len(plan.rows))} rows, {count(len(outcomes))} cells: {', '.join(numbers)}. "
        f"Training {_minutes(summary.seconds)} min in all. Code {plan.code[:12]}."
    )


def _results(summary: Summary) -> Iterator[str]:
    several = len(summary.references) > 1
    lines = [
        cells
        for reference in summary.references
        for cells in _reference_rows(reference, f" ({reference.world})" if several else "")
    ]
    names = [judging.name for judging in summary.plan.also_judged]
    header = [*_HEADER, *(f"{name}: {what}" for name in names for what in _ALSO)]
    beside = [_NOTHING] * (len(_ALSO) * len(names))
    stages = [[*_stage_row(stage), *_also(stage)] for stage in _once(summary.stages)]
    yield from _markdown(header, [*([*line, *beside] for line in lines), *stages])
    yield ""
    yield (
        f"Greedy answers of the last checkpoint on {count(summary.plan.episodes)} held-out "
        "episodes per seed. Interval: Wilson, over the episodes of all seeds together, so the "
        "luck of episodes alone; s, the sample standard deviation, is that of seeds. A seed that "
        "was not judged is left out, and stands below. The interval of the return likewise."
    )
    yield (
        "Minutes: of all seeds. A stage that rows share stands in the first of them alone. "
        "PPO: playing, rescoring, updating; SFT: from the command's start to its end."
    )


def _reference_rows(reference: Reference, suffix: str) -> Iterator[list[str]]:
    for row in (reference.random, reference.expert, reference.ceiling):
        rate = _rate(row.success_rate, row.success_interval)
        invalid = _percents(row.invalid_rate)
        yield [
            *(f"{row.name}{suffix}", _NOTHING, _NOTHING, rate, _NOTHING),
            _mean(row.mean_return, row.return_interval),
            *(invalid, _NOTHING, count(row.episodes), _NOTHING),
        ]


def _once(stages: Sequence[StageSummary]) -> Iterator[StageSummary]:
    """Without the earlier stages that a row shares with a row above it."""
    shown: set[tuple[str, ...]] = set()
    for stage in stages:
        cells = tuple(outcome.cell.key for outcome in stage.outcomes)
        if stage.is_last or cells not in shown:
            yield stage
        shown.add(cells)


def _stage_row(stage: StageSummary) -> list[str]:
    name = f"**{_escape(stage.row)}**" if stage.is_last else _escape(stage.row)
    each = ", ".join(_of_seed(outcome) for outcome in stage.outcomes)
    after = f"{stage.number}. {stage.algorithm}"
    seeds = len(stage.outcomes)
    if stage.pool is None:
        empty = [_NOTHING] * 4
        return [name, after, each, *empty, f"0 of {seeds}", "0", _minutes(stage.seconds)]
    found = stage.pool
    return [
        *(name, after, each, _rate(found.success_rate, found.success_interval), _spread(found)),
        *(_return(found), _percents(found.invalid_rate)),
        f"{found.seeds} of {seeds}",
        *(count(found.episodes), _minutes(stage.seconds)),
    ]


def _also(stage: StageSummary) -> Iterator[str]:
    for found in stage.also:
        yield _NOTHING if found is None else _rate(found.success_rate, found.success_interval)
        yield _NOTHING if found is None else _return(found)


def _of_seed(outcome: Outcome) -> str:
    seed = outcome.cell.config.seed
    if outcome.evaluation is None:
        return f"{seed}: {outcome.state}"
    return f"{seed}: {_percents(outcome.evaluation.policy.success_rate)}"


def _spread(found: Pool) -> str:
    mean = _percents(found.seed_mean)
    return mean if found.seed_deviation is None else f"{mean} ± {_percents(found.seed_deviation)}"


def _pictures(plots: Sequence[str]) -> Iterator[str]:
    for plot in plots:
        yield f"![{plot.partition('.')[0]}]({plot})"


def _cells(summary: Summary) -> Iterator[str]:
    yield "## Cells"
    yield ""
    rows = [_cell(outcome, summary) for outcome in summary.outcomes]
    yield from _markdown(_CELLS_HEADER, rows)


def _cell(outcome: Outcome, summary: Summary) -> list[str]:
    cell = outcome.cell
    rows = ", ".join(map(_escape, summary.plan.rows_of(cell)))
    seconds = _NOTHING if outcome.seconds is None else _minutes(outcome.seconds)
    return [cell.name, rows, outcome.state, seconds, _escape(outcome.error or "")]


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for cells in (header, ["---"] * len(header), *rows):
        yield f"| {' | '.join(cells)} |"


def _rate(rate: float | None, interval: Interval | None) -> str:
    if interval is None:
        return _percents(rate)
    return f"{_percents(rate)} [{_percents(interval.low)}, {_percents(interval.high)}]"


def _return(found: Pool) -> str:
    return _mean(found.mean_return, found.return_interval)


def _mean(value: float | None, interval: Interval | None) -> str:
    if interval is None:
        return decimal(value)
    return f"{decimal(value)} [{decimal(interval.low)}, {decimal(interval.high)}]"


def _percents(rate: float | None) -> str:
    return _NOTHING if rate is None else f"{100 * rate:.1f}"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}"


def _escape(text: str) -> str:
    """In a cell of a table, as it is."""
    for character in "\\|*_<[`":
        text = text.replace(character, f"\\{character}")
    return text
