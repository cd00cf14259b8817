"""A data set's description as one HTML page that needs nothing beside itself."""

from collections.abc import Iterator
from pathlib import Path
from string import Template

from forethought.data.description import Description, TaskDescription
from forethought.data.distribution import Distribution
from forethought.reports.formatting import (
    count,
    decimal,
    decimal_interval,
    percent,
    percent_interval,
    short,
)
from forethought.reports.histograms import draw_histogram
from forethought.reports.markup import asset, document, escape
from forethought.runs.run_folder import write_text

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def write_dataset_page(description: Description, path: Path) -> None:
    """Writes the page; the same description gives the same bytes.

    Raises:
        StorageError: it cannot be written.
    """
    write_text(path, render_dataset(description))


def render_dataset(description: Description) -> str:
    """The page as text."""
    title = f"Data set of {', '.join(description.environment_ids) or 'nothing'}"
    body = Template(asset("dataset.html")).substitute(
        title=escape(title),
        facts="".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
            for name, value in _facts(description)
        ),
        tasks=_table(description),
        charts="".join(_figures(description.whole)),
        range=_range(description),
    )
    return document(title=title, policy=_POLICY, body=body)


def _facts(description: Description) -> Iterator[tuple[str, str]]:
    yield "Source", description.source
    yield "Shards", count(description.shards)
    yield "Size", f"{decimal(description.bytes / 1e6, 1)} MB"
    yield "Steps", count(description.whole.steps)
    yield "With a picture", count(description.pictures)
    yield "Different starts", count(description.seeds)
    versions = description.policy_versions
    if versions is not None and versions != (0, 0):
        yield "Updates of the acting policy", " to ".join(count(version) for version in versions)


def _table(description: Description) -> str:
    columns = ("Success", "Return", "Invalid", "Steps / episode", "Episodes", "Steps")
    heads = "".join(f'<th scope="col">{escape(title)}</th>' for title in columns)
    rows = "".join(_row(task) for task in (description.whole, *description.tasks))
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Episodes by kind of task">'
        f'<table><thead><tr><th scope="col">Tasks</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{_footnote(description.whole)}"
    )


def _row(task: TaskDescription) -> str:
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
    body = "".join(f"<td>{cell}</td>" for cell in cells)
    title = "All" if task.task_type is None else escape(task.task_type)
    return f'<tr><th scope="row">{title}</th>{body}</tr>'


def _footnote(whole: TaskDescription) -> str:
    text = "Second lines: 95 % intervals, Wilson for success, bootstrap for the mean return."
    if whole.parts:
        text += f" {count(whole.parts)} parts of episodes are in the numbers per step alone."
    if whole.lost:
        text += f" {count(whole.lost)} episodes were lost to the environment."
    if whole.randomized:
        text += f" In {count(whole.randomized)} steps an invalid answer was replaced by chance."
    return f'<p class="footnote">{escape(text)}</p>'


def _figures(whole: TaskDescription) -> Iterator[str]:
    charts = (
        ("Return", "undiscounted, per episode", "episodes", whole.returns),
        ("Length of an episode", "steps", "episodes", whole.episode_steps),
        ("Reward", "per step", "steps", whole.rewards),
        ("Length of a prompt", "tokens", "steps", whole.prompt_tokens),
        ("Length of an answer", "tokens", "steps", whole.answer_tokens),
        ("Length of an answer", "characters", "steps", whole.answer_characters),
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
