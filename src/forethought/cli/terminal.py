"""What is printed for persons: text at the width of the terminal, tables, progress bars."""

import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import fsum
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:  # Help is to be there at once, without them.
    from tqdm import tqdm

    from forethought.evaluation.results import Evaluation, EvaluationRow
    from forethought.evaluation.statistics import CollectionStats, Interval, Rate

_BEFORE_FLAG = re.compile(r" (?=--?[a-z])")
_BEFORE_WORD = re.compile(r" (?=\[|-|[A-Z.|a-z:]+(?: |$))")
"""In a line of usage: between two flags, not between a flag and its value in brackets."""
_CONTINUED = re.compile(r" *\\\n *")


def wrapped(text: str) -> str:
    """Paragraphs at the terminal's width; an indented line is a command, and is broken before
    a flag, as a shell reads it."""
    width = shutil.get_terminal_size().columns
    lines: list[str] = []
    paragraph: list[str] = []
    for line in [*_CONTINUED.sub(" ", text).splitlines(), ""]:
        if line and not line[0].isspace():
            paragraph.append(line)
            continue
        lines += _filled(" ".join(paragraph), width)
        paragraph.clear()
        lines += _command(line, width)
    return "\n".join(lines[:-1])


def wrapped_usage(line: str) -> str:
    """A line of usage at the terminal's width, broken between flags."""
    width, lines = shutil.get_terminal_size().columns, [""]
    for part in _BEFORE_WORD.split(line):
        if len(lines[-1]) + 1 + len(part) <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(f"      {part}")
    return "\n".join(lines)[1:]


def row(start: str, text: str) -> str:
    """One line of a table of two columns; the text goes on under itself."""
    width = shutil.get_terminal_size().columns
    return "\n".join(_filled(text, width, start=start, after=" " * len(start))) or start


def _filled(text: str, width: int, *, start: str = "", after: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=start,
        subsequent_indent=after,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _command(line: str, width: int) -> list[str]:
    lines: list[str] = []
    for part in _BEFORE_FLAG.split(line):
        if lines and len(lines[-1]) + len(part) + 3 <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(f"      {part}" if lines else part)
    return [f"{one} \\" for one in lines[:-1]] + lines[-1:]


_NOTHING = "–"


def percent(rate: float | None, interval: "Interval | None" = None) -> str:
    """`43.2 % [38.9, 47.6]`"""
    if rate is None:
        return _NOTHING
    text = f"{100 * rate:.1f} %"
    return (
        text
        if interval is None
        else f"{text} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
    )


def number(value: float | None, interval: "Interval | None" = None) -> str:
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
    evaluation: "Evaluation", *, began_as: "EvaluationRow | None" = None
) -> Iterator[str]:
    """The policy between random policy and expert, with intervals of 95 %.

    Args:
        began_as: the policy before training, on the same episodes.
    """
    how = "greedy" if evaluation.is_greedy else f"temperature {evaluation.temperature:g}"
    if evaluation.holds_actions:
        how += ", constrained decoding"
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


def rows_table(rows: "Sequence[EvaluationRow]") -> Iterator[str]:
    """One line per agent, under a header."""
    header = ("", "success [95 %]", "return [95 %]", "invalid", "steps", "completion tokens")
    yield from align([header, *map(_cells, rows)])


def thoughts_table(rows: "Sequence[EvaluationRow]") -> Iterator[str]:
    """Whether thoughts are true, lead to the action, and keep the form."""
    header = ("thoughts", "perception [95 %]", "of a step [95 %]", "inference [95 %]")
    header = (*header, "consistency [95 %]", "strict format [95 %]")
    yield from align([header, *map(_thought_cells, rows)])


def _thought_cells(row: "EvaluationRow") -> tuple[str, ...]:
    rates = row.thoughts
    shown = (
        *(rates.perception_accuracy, rates.perceived_steps, rates.inference_accuracy),
        *(rates.thought_action_consistency, rates.strict_format),
    )
    return (row.name, *(_rate(rate) for rate in shown))


def _rate(rate: "Rate | None") -> str:
    return _NOTHING if rate is None else percent(rate.share, rate.interval)


def _cells(row: "EvaluationRow") -> tuple[str, ...]:
    return (
        row.name,
        percent(row.success_rate, row.success_interval),
        number(row.mean_return, row.return_interval),
        percent(row.invalid_rate),
        number(row.mean_episode_steps),
        number(row.mean_completion_tokens),
    )


def _remarks(policy: "EvaluationRow") -> Iterator[str]:
    if policy.metrics or policy.failures:
        yield ""
    for name, value in policy.metrics:
        yield f"policy, mean {name}: {number(value)}"
    if policy.failures:
        yield f"policy, episodes lost to a failing environment: {policy.failures}"


def collection_line(stats: "CollectionStats") -> str:
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
        f"success {rate}, return {mean}, invalid actions {invalid}"
    )


def progress_bar(
    description: str, total: int | None, unit: str, *, done: int = 0
) -> "tqdm[NoReturn]":
    """A bar that is advanced by `update`; in a file instead of a terminal, a line now and then.

    Args:
        total: None where that is not known.
        done: how many there are already.
    """
    from tqdm import tqdm

    interval_s = 0.2 if sys.stderr.isatty() else 20.0
    return tqdm(total=total, initial=done, desc=description, unit=unit, mininterval=interval_s)


def episodes_bar(description: str) -> Callable[[int], "tqdm[NoReturn]"]:
    """What opens a bar for a number of episodes."""
    return lambda episodes: progress_bar(description, episodes, "episode")
