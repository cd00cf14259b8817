"""Tables of results: of evaluations, of thoughts, of faithfulness."""

import shlex
from collections.abc import Sequence
from io import BytesIO
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from forethought.evaluation.faithfulness import Faithfulness, FaithfulnessRow
from forethought.evaluation.results import Evaluation, EvaluationRow
from forethought.evaluation.statistics import Interval, Rate
from forethought.reports.inputs import RunRecord
from forethought.reports.markup import (
    MISSING,
    THIN,
    Ink,
    TableRow,
    count,
    counted,
    decimal,
    decimal_interval,
    escape,
    percent,
    percent_interval,
    table,
    to_inline_svg,
)


class Agent(NamedTuple):
    """A row of the table."""

    title: str
    note: str
    row: EvaluationRow
    is_this_run: bool = False
    is_start: bool = False
    """Whether this run began with this agent's model."""


def agents(run: RunRecord) -> list[Agent]:
    """The rows from worst to best expected; none where the run was not evaluated."""
    evaluation = run.evaluation
    if evaluation is None:
        return []
    found = [Agent("Random", "uniform over actions", evaluation.random)]
    if run.start is not None:
        title, note = run.start.algorithm.upper(), "where this run began"
        found.append(Agent(title, note, run.start.evaluation.policy, is_start=True))
    note = "this policy" + (f", {evaluation.checkpoint}" if evaluation.checkpoint else "")
    found.append(Agent(run.algorithm.upper(), note, evaluation.policy, is_this_run=True))
    found.append(Agent("Expert", "the environment's own", evaluation.expert))
    found.append(Agent("Ceiling", "best possible", evaluation.ceiling))
    return found


def table_section(run: RunRecord) -> str:
    """HTML of the table, or of what makes one."""
    if run.evaluation is None:
        command = shlex.join(["forethought", "evaluate", run.config.output])
        return (
            '<p class="notice">This run was not evaluated on held-out episodes yet. '
            f"Do so with <code>{escape(command)}</code>, then write this report again.</p>"
        )
    metrics = [name for name, _ in run.evaluation.policy.metrics]
    columns = ["Success", "Return", "Invalid", "Steps / episode", "Tokens / step"]
    ceiling = run.evaluation.ceiling.success_rate
    rows = [_row(agent, metrics, ceiling) for agent in agents(run)]
    results = table("Results", "Agent", (*columns, *metrics, "Episodes"), rows)
    thoughts = thoughts_table([(_title(agent), agent.row) for agent in agents(run)])
    return f"{results}{_footnote(run)}{thoughts}"


def _title(agent: Agent) -> str:
    return f"{escape(agent.title)}<small>{escape(agent.note)}</small>"


def _row(agent: Agent, metrics: list[str], ceiling: float | None) -> TableRow:
    row = agent.row
    value_of = dict(row.metrics)
    cells = [
        _success(row, ceiling),
        _with_interval(decimal(row.mean_return), row.return_interval),
        percent(row.invalid_rate),
        decimal(row.mean_episode_steps, 1),
        decimal(row.mean_completion_tokens, 1),
        *(decimal(value_of.get(name)) for name in metrics),
        count(row.episodes),
    ]
    return TableRow(_title(agent), cells, "this-run" if agent.is_this_run else "")


def _success(row: EvaluationRow, ceiling: float | None) -> str:
    if row.success_rate is None:
        return MISSING
    interval = row.success_interval
    text = f"<b>{percent(row.success_rate)}</b>"
    if interval is not None:
        text += f"<small>{percent_interval(interval)}</small>"
    bar = success_bar(row.success_rate, interval, ceiling)
    return f'<div class="rate"><span>{text}</span>{bar}</div>'


def success_bar(rate: float, interval: Interval | None, ceiling: float | None) -> str:
    """A bar from 0 to 100 %, the interval as a whisker, the ceiling as a tick."""
    marks = f'<i class="fill" style="width:{100 * rate:.1f}%"></i>'
    if interval is not None:
        left, width = 100 * interval.low, 100 * (interval.high - interval.low)
        marks += f'<i class="whisker" style="left:{left:.1f}%;width:{width:.1f}%"></i>'
    if ceiling is not None:
        marks += f'<i class="ceiling" style="left:{100 * ceiling:.1f}%"></i>'
    return f'<span class="track" aria-hidden="true">{marks}</span>'


def _with_interval(text: str, interval: Interval | None) -> str:
    return text if interval is None else f"{text}<small>{decimal_interval(interval)}</small>"


def _footnote(run: RunRecord) -> str:
    evaluation = run.evaluation
    assert evaluation is not None
    notes = [
        f"Held-out episodes of {evaluation.environment_id}: no training uses their seeds. "
        f"Decoding: {_how(evaluation)}. Second lines: 95{THIN}% intervals, Wilson for success, "
        "bootstrap for the return. Whiskers are the intervals, the upright line is the ceiling."
    ]
    start = run.start
    if start is not None and _how(start.evaluation) != _how(evaluation):
        notes.append(f"Decoding of {start.algorithm.upper()}: {_how(start.evaluation)}.")
    lost = sum(agent.row.failures or 0 for agent in agents(run))
    if lost:
        episodes = counted(lost, "episode was", "episodes were")
        notes.append(f"{episodes} lost to crashes or timeouts of the environment and not counted.")
    if _is_behind(run):
        notes.append(
            f"The run has gone on to step {run.last_step} since {evaluation.checkpoint} "
            "was evaluated."
        )
    return f'<p class="footnote">{" ".join(escape(note) for note in notes)}</p>'


def _how(evaluation: Evaluation) -> str:
    """How completions were decoded."""
    held = ", constrained to admissible actions" if evaluation.holds_actions else ""
    if evaluation.is_greedy:
        return f"greedy{held}"
    return f"sampled at temperature {evaluation.temperature:g}{held}"


def _is_behind(run: RunRecord) -> bool:
    """Whether a checkpoint was evaluated that is not the last state of the run."""
    checkpoint = run.evaluation.checkpoint if run.evaluation else None
    if checkpoint is None or run.last_step is None:
        return False
    step = checkpoint.removeprefix("step_")
    return step.isdigit() and int(step) < run.last_step


_COLUMNS = (
    ("Perception", "claims about the observation that are true"),
    ("All of a step", "steps whose claims about it are all true"),
    ("Inference", "claims that follow from it and are true"),
    ("Consistency", "steps that name the action their thought concludes"),
    ("Strict format", "completions with exactly the fields asked for"),
)


def thoughts_table(rows: Sequence[tuple[str, EvaluationRow]]) -> str:
    """HTML of one line per agent that has any of these figures; empty where none has.

    Args:
        rows: each agent's name as HTML, and what it did.
    """
    with_any = [(title, row) for title, row in rows if row.thoughts.has_any]
    if not with_any:
        return ""
    body = [TableRow(title, [*map(_cell, _rates(row))]) for title, row in with_any]
    meanings = "; ".join(f"{title}: {meaning}" for title, meaning in _COLUMNS)
    return (
        f"{table('Thoughts', 'Thoughts', [title for title, _ in _COLUMNS], body)}"
        f'<p class="footnote">{escape(meanings)}. Second lines: 95\u202f% intervals (Wilson), and '
        "how many claims or steps were counted.</p>"
    )


def _rates(row: EvaluationRow) -> tuple[Rate | None, ...]:
    rates = row.thoughts
    return (
        *(rates.perception_accuracy, rates.perceived_steps, rates.inference_accuracy),
        *(rates.thought_action_consistency, rates.strict_format),
    )


def _cell(rate: Rate | None) -> str:
    if rate is None:
        return MISSING
    interval = f"{percent_interval(rate.interval)} of {count(rate.count)}"
    return f"<b>{percent(rate.share)}</b><small>{interval}</small>"


TITLES = {
    "own": "own thoughts",
    "expert": "expert's thoughts",
    "other": "thoughts of another state",
    "none": "no thoughts",
}
_BAR = 0.26


class Colors(NamedTuple):
    """Colors of the three bars of each row, and of the text."""

    bars: tuple[str, str, str]
    text: str


INLINE = Colors((Ink.SERIES_1, Ink.SERIES_2, Ink.MARK), Ink.TEXT)
STANDALONE = Colors(("#0072b2", "#d55e00", "#999999"), "#333333")
"""Okabe and Ito's, and gray."""

_HEADS = ("As concluded", "As before", "As the expert")
LABELS = ("what the thoughts conclude", "what was done before", "what the expert does")


def faithfulness_plot(found: Faithfulness) -> str:
    """An SVG file of its own. The same figures always give the same text."""
    with style.context(["default", {"text.parse_math": False}]):
        figure = _figure(found, STANDALONE)
        FigureCanvasSVG(figure)
        file = BytesIO()
        with matplotlib.rc_context({"svg.hashsalt": "faithfulness", "svg.fonttype": "none"}):
            figure.savefig(file, format="svg", facecolor="white", metadata={"Date": None})
    return file.getvalue().decode("utf-8")


def faithfulness_section(found: Faithfulness | None) -> str:
    """HTML of plot and table; empty where nothing was measured."""
    if found is None:
        return ""
    with style.context(["default", {"text.parse_math": False}]):
        svg = to_inline_svg(
            _figure(found, INLINE), name="faithfulness", description=_description(found)
        )
    heads = (*_HEADS, "p(concluded)", "p(before)")
    rows = table("Faithfulness", "After", heads, [*map(_faithfulness_row, found.rows)])
    which = f", {escape(found.checkpoint)}" if found.checkpoint else ""
    return (
        '<div class="charts one"><figure><figcaption>'
        "<b>The likeliest action after other thoughts</b>"
        f"<small>{found.steps} stored steps, asked again{which}.</small></figcaption>"
        f"{svg}</figure></div>"
        f"{rows}"
        '<p class="footnote">The thoughts of stored steps were replaced and every action scored '
        "after them. Thoughts of another state conclude another action than the step's own "
        "where there are such. Columns: the likeliest action is what the thoughts conclude, what "
        "was done before, what the expert does; mean probabilities of the first two. A state has "
        f"{decimal(found.mean_actions, 1)} actions on average. "
        "Second lines: 95\u202f% intervals (Wilson).</p>"
    )


def _figure(found: Faithfulness, colors: Colors) -> Figure:
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.subplots()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(colors.text)
    axes.tick_params(colors=colors.text)
    for series, (label, color) in enumerate(zip(LABELS, colors.bars, strict=True)):
        rates = [_faithfulness_rates(row)[series] for row in found.rows]
        places = [
            (position + (series - 1) * _BAR, rate)
            for position, rate in enumerate(rates)
            if rate is not None
        ]
        if places:
            _plot_bars(axes, places, color, label)
    axes.set_yticks(
        range(len(found.rows)), [TITLES[row.thoughts] for row in found.rows], color=colors.text
    )
    axes.set_ylim(len(found.rows) - 0.5, -0.5)
    axes.set_xlim(0, 1.0)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("likeliest action, share of steps, 95 %", color=colors.text)
    figure.legend(
        loc="outside lower center", ncols=3, frameon=False, fontsize=8, labelcolor=colors.text
    )
    return figure


def _plot_bars(axes: Axes, places: Sequence[tuple[float, Rate]], color: str, label: str) -> None:
    shares = np.array([rate.share for _, rate in places])
    ends = np.array([rate.interval for _, rate in places])
    axes.barh(
        [place for place, _ in places],
        shares,
        height=_BAR,
        color=color,
        label=label,
        xerr=np.abs(np.stack([shares - ends[:, 0], ends[:, 1] - shares])),
        error_kw={"elinewidth": 1.0, "ecolor": STANDALONE.text},
    )


def _description(found: Faithfulness) -> str:
    said = [
        f"{TITLES[row.thoughts]}: "
        + ", ".join(
            f"{label} {MISSING if rate is None else percent(rate.share)}"
            for label, rate in zip(LABELS, _faithfulness_rates(row), strict=True)
        )
        for row in found.rows
    ]
    return f"The likeliest action after other thoughts. {'; '.join(said)}"


def _faithfulness_rates(row: FaithfulnessRow) -> tuple[Rate | None, Rate, Rate]:
    return row.follows_thought, row.keeps_action, row.expert_action


def _faithfulness_row(row: FaithfulnessRow) -> TableRow:
    numbers = (decimal(row.thought_probability), decimal(row.kept_probability))
    return TableRow(TITLES[row.thoughts], [*map(_cell, _faithfulness_rates(row)), *numbers])
