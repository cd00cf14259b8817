"""The head of the page, what was trained and what came of it; and its end, how to do it again."""

import shlex
from datetime import UTC, datetime

from forethought.configs.contract import ENVIRONMENT_STEPS
from forethought.evaluation.results import EvaluationRow
from forethought.reports.formatting import count, percent, percent_interval
from forethought.reports.inputs import RunRecord
from forethought.reports.markup import escape
from forethought.reports.metrics import SUCCESS_RATE
from forethought.reports.results import Agent, agents


def page_title(run: RunRecord) -> str:
    """For the browser's tab, as text."""
    return f"{run.algorithm.upper()} on {run.config.environment.id}"


def header_section(run: RunRecord) -> str:
    """HTML of title, facts and the headline number."""
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in _facts(run)
    )
    return (
        f'<p class="eyebrow">Forethought run report</p><h1>{escape(page_title(run))}</h1>'
        f'<dl class="facts">{facts}</dl>{_headline(run)}'
    )


def setup_section(run: RunRecord) -> str:
    """HTML of the commands, settings and versions that give this run again."""
    settings = _folded("Settings", escape(run.config_text))
    versions = _folded("Versions", escape(run.environment)) if run.environment else ""
    unknown = "" if versions else '<p class="notice">Versions unknown: no environment.txt.</p>'
    return (
        "<p>Trained, evaluated and reported again by</p>"
        f"<pre>{escape(_commands(run))}</pre>{settings}{versions}{unknown}"
    )


def _facts(run: RunRecord) -> list[tuple[str, str]]:
    config = run.config
    when = datetime.fromtimestamp(run.written_s, UTC).strftime("%d %b %Y, %H:%M UTC")
    return [
        ("Starting model", config.model),
        ("Trained for", _progress(run)),
        ("Seed", str(config.seed)),
        ("Last logged" if run.metrics is not None else "Started", when),
    ]


def _progress(run: RunRecord) -> str:
    """How far the run came, and how far it was to go where that is further."""
    length, done = run.config.length, run.last_step or 0
    if run.metrics is not None and length.unit == ENVIRONMENT_STEPS:
        steps_T = run.metrics.environment_steps(run.metrics.steps, per_step=length.per_line)
        done = int(steps_T[-1])
    end = "" if length.total is None or length.is_over(done) else f" of {count(length.total)}"
    return f"{count(done)}{end} {length.unit}"


def _headline(run: RunRecord) -> str:
    table = agents(run)
    if not table:
        return _training_headline(run)
    before = next((agent for agent in table if agent.is_start), None)
    after = next(agent for agent in table if agent.is_this_run)
    others = [agent for agent in table if not agent.is_start and not agent.is_this_run]
    arrow = '<span class="arrow" aria-label="then">→</span>'
    story = f"{_figure(before)}{arrow}" if before else ""
    side = "".join(_figure(agent) for agent in others)
    return (
        '<div class="headline"><div class="story"><p>Success on held-out episodes</p>'
        f"<div>{story}{_figure(after, is_main=True)}</div></div>"
        f'<div class="beside">{side}</div></div>'
    )


def _figure(agent: Agent, *, is_main: bool = False) -> str:
    kind = "figure main" if is_main else "figure"
    return (
        f'<div class="{kind}"><span>{escape(agent.title)}</span>'
        f"<b>{percent(agent.row.success_rate)}</b><small>{_certainty(agent.row)}</small></div>"
    )


def _certainty(row: EvaluationRow) -> str:
    return percent_interval(row.success_interval) if row.success_interval else ""


def _training_headline(run: RunRecord) -> str:
    """What can be said before an evaluation: success of the last training episodes."""
    metrics = run.metrics
    if metrics is None or SUCCESS_RATE not in metrics.names:
        return ""
    rates = metrics.column(SUCCESS_RATE).values
    if not rates.size:
        return ""
    return (
        '<div class="headline"><div class="story"><p>Success in training, last iteration; '
        'not evaluated on held-out episodes yet</p><div><div class="figure main">'
        f"<span>{escape(run.algorithm.upper())}</span><b>{percent(float(rates[-1]))}</b>"
        "</div></div></div></div>"
    )


def _commands(run: RunRecord) -> str:
    output = run.config.output
    again = f"{output.rstrip('/')}-again"
    config = f"{output.rstrip('/')}/config.yaml"
    lines = [
        ["forethought", "train", run.algorithm, "--config", config, "--output", again],
        ["forethought", "evaluate", again, *_how_evaluated(run)],
        ["forethought", "report", again],
    ]
    return "\n".join(shlex.join(line) for line in lines)


def _how_evaluated(run: RunRecord) -> list[str]:
    """The flags that ask for the same evaluation again."""
    if run.evaluation is None:
        return []
    first, stop = run.evaluation.seed_range
    temperature = f"{run.evaluation.temperature:g}"
    held = ["--constrain-actions"] if run.evaluation.holds_actions else []
    return ["--episodes", str(stop - first), "--temperature", temperature, *held]


def _folded(title: str, escaped_text: str) -> str:
    return f"<details><summary>{title}</summary><pre>{escaped_text}</pre></details>"
