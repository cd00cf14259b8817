"""A study as a page of Markdown: the table, what it leaves out, and every cell."""

from collections.abc import Iterator, Sequence

from forethought.evaluation.statistics import Interval
from forethought.reports.formatting import count, decimal
from forethought.studies.records import Outcome, State
from forethought.studies.summary import Pool, Reference, StageSummary, Summary

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
        for cells in _reference(reference, f" ({reference.world})" if several else "")
    ]
    names = [judging.name for judging in summary.plan.also_judged]
    header = [*_HEADER, *(f"{name}: {what}" for name in names for what in _ALSO)]
    beside = [_NOTHING] * (len(_ALSO) * len(names))
    stages = [[*_stage(stage), *_also(stage)] for stage in _once(summary.stages)]
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


def _reference(reference: Reference, suffix: str) -> Iterator[list[str]]:
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


def _stage(stage: StageSummary) -> list[str]:
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
