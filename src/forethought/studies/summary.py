"""The table of a study: each stage of a variant, over its seeds."""

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
    """Number of seeds that were evaluated."""
    episodes: int
    successes: int
    success_interval: Interval
    """95 %, Wilson, over all episodes: the variation between episodes, not that between seeds."""
    seed_mean: float
    """Mean of the seeds' success rates."""
    seed_deviation: float | None
    """Sample standard deviation of the success rates; None for a single seed."""
    seed_range: Interval
    """Lowest and highest success rate."""
    mean_return: float
    return_interval: Interval | None
    """95 %, of the variation between episodes: the seeds' own intervals, combined as those of
    independent normal means. None where one of them has none."""
    invalid_rate: float
    """Share of all steps."""

    @property
    def success_rate(self) -> float:
        return self.successes / self.episodes


@dataclass(frozen=True)
class StageSummary:
    """A stage of a variant."""

    variant: str
    number: int
    """From 1."""
    is_last: bool
    algorithm: str
    outcomes: tuple[Outcome, ...]
    """By seed."""
    pool: Pool | None
    """None where no seed was evaluated."""
    extra: tuple[Pool | None, ...]
    """The same for each of the study's extra evaluations."""

    @property
    def seconds(self) -> float:
        """Training time of all seeds together."""
        return fsum(outcome.seconds or 0.0 for outcome in self.outcomes)


@dataclass(frozen=True)
class Reference:
    """Random policy, expert and ceiling on the same episodes."""

    environment: str
    """Its id with its options: figures of one environment are comparable."""
    random: EvaluationRow
    expert: EvaluationRow
    ceiling: EvaluationRow


@dataclass(frozen=True)
class Summary:
    """Content of the table."""

    plan: Plan
    stages: tuple[StageSummary, ...]
    """Variant by variant."""
    references: tuple[Reference, ...]
    """One for each environment."""
    outcomes: tuple[Outcome, ...]
    """Each run once, in the order of training."""

    @property
    def seconds(self) -> float:
        """Training time of the study; a run that variants share counts once."""
        return fsum(outcome.seconds or 0.0 for outcome in self.outcomes)


def summarize(plan: Plan, outcomes: Sequence[Outcome]) -> Summary:
    """Pools the seeds of every stage.

    Args:
        outcomes: one for each run of the plan.
    """
    outcome_of = {outcome.run: outcome for outcome in outcomes}
    stages = tuple(
        _stage(
            variant.name, number, variant.stages, [outcome_of[run] for run in variant.stage(number)]
        )
        for variant in plan.variants
        for number in range(variant.stages)
    )
    return Summary(plan, stages, _references(plan, outcomes), tuple(outcomes))


def pool(rows: Sequence[EvaluationRow]) -> Pool | None:
    """Episodes of several evaluations together; None where none was played to its end."""
    evaluated = [row for row in rows if row.episodes]
    if not evaluated:
        return None
    episodes = sum(row.episodes or 0 for row in evaluated)
    successes = sum(round((row.success_rate or 0.0) * (row.episodes or 0)) for row in evaluated)
    returns = fsum((row.mean_return or 0.0) * (row.episodes or 0) for row in evaluated)
    steps = [(row.mean_episode_steps or 0.0) * (row.episodes or 0) for row in evaluated]
    invalid = fsum((row.invalid_rate or 0.0) * n for row, n in zip(evaluated, steps, strict=True))
    rates = [row.success_rate or 0.0 for row in evaluated]
    return Pool(
        seeds=len(evaluated),
        episodes=episodes,
        successes=successes,
        success_interval=wilson_interval(successes, episodes),
        seed_mean=fmean(rates),
        seed_deviation=stdev(rates) if len(rates) > 1 else None,
        seed_range=Interval(min(rates), max(rates)),
        mean_return=returns / episodes,
        return_interval=_pooled_interval(evaluated, returns / episodes, episodes),
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


def _stage(variant: str, number: int, stages: int, outcomes: list[Outcome]) -> StageSummary:
    evaluated = [outcome.evaluation.policy for outcome in outcomes if outcome.evaluation]
    algorithm = outcomes[0].run.algorithm
    is_last = number + 1 == stages
    further = zip(*(outcome.extra for outcome in outcomes), strict=True)
    extra = tuple(pool([found.policy for found in each if found]) for each in further)
    return StageSummary(
        variant, number + 1, is_last, algorithm, tuple(outcomes), pool(evaluated), extra
    )


def _references(plan: Plan, outcomes: Sequence[Outcome]) -> tuple[Reference, ...]:
    found: dict[str, Reference] = {}
    for outcome in outcomes:
        options = outcome.run.config.environment.options
        of_all = [options, *(extra.applied(options) for extra in plan.extra_evaluations)]
        for each, evaluation in zip(of_all, (outcome.evaluation, *outcome.extra), strict=True):
            if evaluation is not None:
                environment = " ".join([evaluation.environment_id, *sorted(each)])
                found.setdefault(environment, _reference(environment, evaluation))
    return tuple(found.values())


def _reference(environment: str, evaluation: Evaluation) -> Reference:
    return Reference(environment, evaluation.random, evaluation.expert, evaluation.ceiling)


_NONE = "–"
_HEADER = (
    *("variant", "after", "success of each seed, %", "of all episodes, % [95 %]"),
    *("mean ± s of seeds, %", "return [95 %]", "invalid, %", "seeds", "episodes"),
    "training, min",
)
_EXTRA_HEADER = ("success, % [95 %]", "return [95 %]")
"""Columns of each extra evaluation."""
_RUNS_HEADER = ("run", "variants", "state", "training, min", "")


def write_table(summary: Summary, plots: Sequence[str]) -> str:
    """Text of the page: the table, the plots, the runs.

    Args:
        plots: names of the image files beside it.
    """
    parts = (_head(summary), _results(summary), _images(plots), _runs(summary))
    return "\n".join(line for part in parts for line in (*part, ""))


def _head(summary: Summary) -> Iterator[str]:
    plan, outcomes = summary.plan, summary.outcomes
    states = [outcome.state for outcome in outcomes]
    numbers = (f"{states.count(s)} {s}" for s in reversed(State) if states.count(s))
    yield f"# {plan.name}"
    yield ""
    yield (
        f"{count(len(plan.variants))} variants, {count(len(outcomes))} runs: {', '.join(numbers)}. "
        f"Training {_minutes(summary.seconds)} min in all. Code {plan.code[:12]}."
    )


def _results(summary: Summary) -> Iterator[str]:
    several = len(summary.references) > 1
    found = [
        line
        for reference in summary.references
        for line in _reference_rows(reference, f" ({reference.environment})" if several else "")
    ]
    names = [extra.name for extra in summary.plan.extra_evaluations]
    header = [*_HEADER, *(f"{name}: {what}" for name in names for what in _EXTRA_HEADER)]
    beside = [_NONE] * (len(_EXTRA_HEADER) * len(names))
    stages = [[*_stage_row(stage), *_extra(stage)] for stage in _once(summary.stages)]
    yield from _markdown(header, [*([*line, *beside] for line in found), *stages])
    yield ""
    yield (
        f"Greedy completions of the last checkpoint on {count(summary.plan.episodes)} held-out "
        "episodes per seed. Intervals are over the episodes of all seeds together, Wilson's for "
        "the success rate: they show the variation between episodes. s is the sample standard "
        "deviation of the seeds. A seed that was not evaluated is left out, and listed below."
    )
    yield (
        "Minutes are those of all seeds. A stage that variants share is listed in the first alone. "
        "PPO: collecting, recomputing log-probs, updating; SFT: the whole command."
    )


def _reference_rows(reference: Reference, suffix: str) -> Iterator[list[str]]:
    for row in (reference.random, reference.expert, reference.ceiling):
        rate = _rate(row.success_rate, row.success_interval)
        invalid = _percents(row.invalid_rate)
        yield [
            *(f"{row.name}{suffix}", _NONE, _NONE, rate, _NONE),
            _mean(row.mean_return, row.return_interval),
            *(invalid, _NONE, count(row.episodes), _NONE),
        ]


def _once(stages: Sequence[StageSummary]) -> Iterator[StageSummary]:
    """Without the earlier stages that a variant shares with a variant above it."""
    shown: set[tuple[str, ...]] = set()
    for stage in stages:
        runs = tuple(outcome.run.key for outcome in stage.outcomes)
        if stage.is_last or runs not in shown:
            yield stage
        shown.add(runs)


def _stage_row(stage: StageSummary) -> list[str]:
    name = f"**{_escape(stage.variant)}**" if stage.is_last else _escape(stage.variant)
    each = ", ".join(_of_seed(outcome) for outcome in stage.outcomes)
    after = f"{stage.number}. {stage.algorithm}"
    seeds = len(stage.outcomes)
    if stage.pool is None:
        empty = [_NONE] * 4
        return [name, after, each, *empty, f"0 of {seeds}", "0", _minutes(stage.seconds)]
    found = stage.pool
    return [
        *(name, after, each, _rate(found.success_rate, found.success_interval), _spread(found)),
        *(_return(found), _percents(found.invalid_rate)),
        f"{found.seeds} of {seeds}",
        *(count(found.episodes), _minutes(stage.seconds)),
    ]


def _extra(stage: StageSummary) -> Iterator[str]:
    for found in stage.extra:
        yield _NONE if found is None else _rate(found.success_rate, found.success_interval)
        yield _NONE if found is None else _return(found)


def _of_seed(outcome: Outcome) -> str:
    seed = outcome.run.config.seed
    if outcome.evaluation is None:
        return f"{seed}: {outcome.state}"
    return f"{seed}: {_percents(outcome.evaluation.policy.success_rate)}"


def _spread(found: Pool) -> str:
    mean = _percents(found.seed_mean)
    return mean if found.seed_deviation is None else f"{mean} ± {_percents(found.seed_deviation)}"


def _images(plots: Sequence[str]) -> Iterator[str]:
    for plot in plots:
        yield f"![{plot.partition('.')[0]}]({plot})"


def _runs(summary: Summary) -> Iterator[str]:
    yield "## Runs"
    yield ""
    yield from _markdown(_RUNS_HEADER, [_run_line(each, summary) for each in summary.outcomes])


def _run_line(outcome: Outcome, summary: Summary) -> list[str]:
    run = outcome.run
    variants = ", ".join(map(_escape, summary.plan.variants_of(run)))
    seconds = _NONE if outcome.seconds is None else _minutes(outcome.seconds)
    return [run.name, variants, outcome.state, seconds, _escape(outcome.error or "")]


def _markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    for cells in (header, ["---"] * len(header), *lines):
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
    return _NONE if rate is None else f"{100 * rate:.1f}"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}"


def _escape(text: str) -> str:
    """Text of a table cell that Markdown shows as it is."""
    for character in "\\|*_<[`":
        text = text.replace(character, f"\\{character}")
    return text
