"""A data set's description as one HTML page that needs nothing beside itself."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from forethought.data.description import Description, Distribution, TaskDescription
from forethought.durable import write_text
from forethought.reports.histograms import draw_histogram
from forethought.reports.markup import (
    Section,
    TableRow,
    count,
    decimal,
    decimal_interval,
    document,
    escape,
    percent,
    percent_interval,
    sections_html,
    short,
    table,
)
from forethought.reports.replay import select_episodes
from forethought.reports.replay_html import replay_section
from forethought.types import Trajectory

MOST_READ = 200
"""Episodes from the beginning of the data set, of which some are replayed."""


def write_dataset_page(
    description: Description, trajectories: Iterable[Trajectory], path: Path
) -> None:
    """Writes the page; the same data set gives the same bytes.

    Args:
        trajectories: of the data set, in order; only the first ones are read.

    Raises:
        StorageError: it cannot be written, or a trajectory is refused.
    """
    write_text(path, render_dataset(description, [*islice(trajectories, MOST_READ)]))


def render_dataset(description: Description, trajectories: Sequence[Trajectory]) -> str:
    """The page as text."""
    title = f"Data set: {', '.join(description.environment_ids) or 'no episodes'}"
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in _facts(description)
    )
    replay = replay_section(select_episodes(trajectories), _which(description, trajectories))
    charts = f'<div class="charts">{"".join(_figures(description.whole))}</div>'
    sections = (
        Section("replay", "Replay", replay.html),
        Section("tasks", "Episodes", _table(description)),
        Section("distributions", "Distributions", charts),
        Section("range", "Range of returns", _range(description)),
    )
    body = (
        f'<header class="top">\n<p class="eyebrow">Forethought data set</p><h1>{escape(title)}</h1>'
        f'<dl class="facts">{facts}</dl>\n</header>\n{sections_html(sections)}'
    )
    return document(title=title, body=body, replay_data=replay.data)


def _which(description: Description, trajectories: Sequence[Trajectory]) -> str:
    whole = description.whole
    total = whole.episodes + whole.parts + whole.lost
    if len(trajectories) == total:
        return "All trajectories of the data set"
    return f"The first {count(len(trajectories))} of {count(total)} trajectories"


def _facts(description: Description) -> Iterator[tuple[str, str]]:
    yield "Source", description.source
    yield "Shards", count(description.shards)
    is_large = description.bytes >= 1e6
    size, unit = (description.bytes / 1e6, "MB") if is_large else (description.bytes / 1e3, "kB")
    yield "Size", f"{decimal(size, 1)} {unit}"
    yield "Steps", count(description.whole.steps)
    yield "With an image", count(description.images)
    yield "Different starts", count(description.seeds)
    versions = description.policy_versions
    if versions is not None and versions != (0, 0):
        yield "Updates of the acting policy", " to ".join(count(version) for version in versions)


def _table(description: Description) -> str:
    columns = ("Success", "Return", "Invalid", "Steps / episode", "Episodes", "Steps")
    rows = [_row(task) for task in (description.whole, *description.tasks)]
    return table("Episodes by kind of task", "Tasks", columns, rows) + _footnote(description.whole)


def _row(task: TaskDescription) -> TableRow:
    cells = [
        percent(task.success_rate),
        decimal(task.mean_return),
        percent(task.invalid_rate),
        decimal(task.episode_steps.mean, 1),
        count(task.episodes),
        count(task.steps),
    ]
    if task.success_interval is not None:
        cells[0] += f"<small>{percent_interval(task.success_interval)}</small>"
    if task.return_interval is not None:
        cells[1] += f"<small>{decimal_interval(task.return_interval)}</small>"
    return TableRow("All" if task.task_type is None else escape(task.task_type), cells)


def _footnote(whole: TaskDescription) -> str:
    text = "Second lines: 95 % intervals, Wilson for success, bootstrap for the mean return."
    if whole.parts:
        text += f" {count(whole.parts)} parts of episodes are in the numbers per step alone."
    if whole.lost:
        text += f" {count(whole.lost)} episodes were lost to the environment."
    if whole.randomized:
        text += f" In {count(whole.randomized)} steps a random action replaced an invalid one."
    return f'<p class="footnote">{escape(text)}</p>'


def _figures(whole: TaskDescription) -> Iterator[str]:
    charts = (
        ("Return", "undiscounted, per episode", "episodes", whole.returns),
        ("Episode length", "steps", "episodes", whole.episode_steps),
        ("Reward", "per step", "steps", whole.rewards),
        ("Prompt length, tokens", "tokens", "steps", whole.prompt_tokens),
        ("Completion length, tokens", "tokens", "steps", whole.completion_tokens),
        ("Completion length, characters", "characters", "steps", whole.completion_characters),
    )
    for index, (title, x_label, y_label, numbers) in enumerate(charts):
        if numbers.total:
            yield _figure(title, x_label, y_label, numbers, f"histogram-{index}")


def _figure(title: str, x_label: str, y_label: str, numbers: Distribution, name: str) -> str:
    summary = (
        f"mean {short(numbers.mean)}, median {short(numbers.quantile(0.5))}, "
        f"{short(numbers.lowest)} to {short(numbers.highest)}"
    )
    svg = draw_histogram(
        numbers.values_K,
        numbers.counts_K,
        name=name,
        description=f"{title} in {x_label}: {summary}",
        x_label=x_label,
        y_label=y_label,
    )
    caption = f"<b>{escape(title)}</b><small>{escape(summary)}</small>"
    return f"<figure><figcaption>{caption}</figcaption>{svg}</figure>"


def _range(description: Description) -> str:
    span, declared = description.returns_to_go, description.reward_map
    lines: list[str] = []
    if span is not None:
        lines.append(
            f"Discounted sums of rewards from any step on, at γ = {description.gamma:g}, lie "
            f"between {short(span[0])} and {short(span[1])}."
        )
    if declared is None:
        lines.append("No reward map is declared (reward_map.json).")
    else:
        lines.append(
            f"The declared reward map takes {short(declared.lowest)} to 0 and "
            f"{short(declared.highest)} to 1."
        )
    return "".join(f'<p class="lead">{escape(line)}</p>' for line in lines)
