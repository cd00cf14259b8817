"""Numbers as text that a person reads."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import fsum

from forethought.evaluation.collection_stats import CollectionStats
from forethought.evaluation.results import Evaluation, EvaluationRow
from forethought.evaluation.statistics import Interval, Rate

_NOTHING = "–"


def percent(rate: float | None, interval: Interval | None = None) -> str:
    """`43.2 % [38.9, 47.6]`"""
    if rate is None:
        return _NOTHING
    text = f"{100 * rate:.1f} %"
    return (
        text
        if interval is None
        else f"{text} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
    )


def number(value: float | None, interval: Interval | None = None) -> str:
    """`-0.05 [-0.14, 0.03]`"""
    if value is None:
        return _NOTHING
    text = f"{value:.2f}"
    return text if interval is None else f"{text} [{interval.low:.2f}, {interval.high:.2f}]"


def align(rows: Sequence[Sequence[str]], *, left: bool = False) -> Iterator[str]:
    """Columns of equal width, the first to the left and the others to the right.

    Args:
        left: all of them to the left, as text wants to be.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    side = "<" if left else ">"
    for first, *others in rows:
        cells = [f"{cell:{side}{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([f"{first:{widths[0]}}", *cells]).rstrip()


def evaluation_table(
    evaluation: Evaluation, *, began_as: EvaluationRow | None = None
) -> Iterator[str]:
    """The policy between chance and the expert, with intervals of 95 %.

    Args:
        began_as: what the policy was before it was trained, on the same episodes.
    """
    how = "greedy" if evaluation.is_greedy else f"temperature {evaluation.temperature:g}"
    if evaluation.holds_actions:
        how += ", held to open actions"
    which = f", {evaluation.checkpoint}" if evaluation.checkpoint else ""
    start, stop = evaluation.seed_range
    yield f"{evaluation.environment_id}, {stop - start} held-out episodes, {how}{which}"
    yield ""
    before = [] if began_as is None else [replace(began_as, name="before")]
    rows = [evaluation.random, *before, evaluation.policy, evaluation.expert, evaluation.ceiling]
    yield from rows_table(rows)
    if evaluation.policy.thoughts.has_any:
        yield ""
        yield from thoughts_table([row for row in rows if row.thoughts.has_any])
    yield from _remarks(evaluation.policy)


def rows_table(rows: Sequence[EvaluationRow]) -> Iterator[str]:
    """One line per agent, under a header."""
    header = ("", "success [95 %]", "return [95 %]", "invalid", "steps", "tokens per answer")
    yield from align([header, *map(_cells, rows)])


def thoughts_table(rows: Sequence[EvaluationRow]) -> Iterator[str]:
    """Whether thoughts are true, lead to the action, and keep the form."""
    header = ("thoughts", "perception [95 %]", "of a step [95 %]", "inference [95 %]")
    header = (*header, "consistency [95 %]", "strict format [95 %]")
    yield from align([header, *map(_thought_cells, rows)])


def _thought_cells(row: EvaluationRow) -> tuple[str, ...]:
    rates = row.thoughts
    shown = (
        *(rates.perception_accuracy, rates.perceived_steps, rates.inference_accuracy),
        *(rates.thought_action_consistency, rates.strict_format),
    )
    return (row.name, *(_rate(rate) for rate in shown))


def _rate(rate: Rate | None) -> str:
    return _NOTHING if rate is None else percent(rate.share, rate.interval)


def _cells(row: EvaluationRow) -> tuple[str, ...]:
    return (
        row.name,
        percent(row.success_rate, row.success_interval),
        number(row.mean_return, row.return_interval),
        percent(row.invalid_rate),
        number(row.mean_episode_steps),
        number(row.mean_completion_tokens),
    )


def _remarks(policy: EvaluationRow) -> Iterator[str]:
    if policy.metrics or policy.failures:
        yield ""
    for name, value in policy.metrics:
        yield f"policy, mean {name}: {number(value)}"
    if policy.failures:
        yield f"policy, episodes lost to a failing environment: {policy.failures}"


def collection_line(stats: CollectionStats) -> str:
    """A collection in one line."""
    episodes = len(stats.returns)
    if not episodes:
        return f"no episode could be played to its end ({stats.failures} failed)"
    rate = percent(stats.successes / episodes, stats.success_interval())
    mean = number(fsum(stats.returns) / episodes, stats.return_interval())
    invalid = percent(stats.invalid / stats.steps)
    failed = f", {stats.failures} failed" if stats.failures else ""
    return (
        f"{episodes:,} episodes{failed}, {stats.steps:,} steps; "
        f"success {rate}, return {mean}, invalid answers {invalid}"
    )
