"""Puts a run's report together: one HTML page that needs nothing beside itself."""

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from forethought.configs.contract import ENVIRONMENT_STEPS
from forethought.durable import write_text
from forethought.evaluation.results import EvaluationRow
from forethought.reports.curves import curves_section, timing_section
from forethought.reports.inputs import RunRecord, read_run
from forethought.reports.markup import (
    Section,
    count,
    counted,
    decimal,
    document,
    embedded,
    escape,
    image_element,
    percent,
    percent_interval,
    sections_html,
)
from forethought.reports.metrics import SUCCESS_RATE
from forethought.reports.preferences import preferences_section
from forethought.reports.replay import select_episodes, shown_thoughts
from forethought.reports.replay_html import ReplaySection, claims_list, no_replay, replay_section
from forethought.reports.results import Agent, agents, faithfulness_section, table_section
from forethought.runs.run_folder import RunFolder
from forethought.types import Step, Trajectory


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
        f"<b>{percent(agent.row.success_rate)}</b><small>{_interval_text(agent.row)}</small></div>"
    )


def _interval_text(row: EvaluationRow) -> str:
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


MOST_EPISODES = 2
MOST_STEPS = 3
"""Steps of each episode; the others are folded."""
_IMAGE_WIDTH = 96


class Pair(NamedTuple):
    """Two episodes from one seed."""

    number: int
    """Among the run's own, from 1."""
    before: Trajectory
    after: Trajectory


def before_after_section(run: RunRecord) -> str:
    """HTML; empty where the start was not evaluated on the same episodes, or none is stored."""
    if run.start is None or run.episodes is None or run.episodes.played_for != "evaluation":
        return ""
    pairs = choose_pairs(run.start.episodes, run.episodes.trajectories)
    if not pairs:
        return ""
    titles = (f"{run.start.algorithm.upper()}, before", f"{run.algorithm.upper()}, after")
    first, *others = (_pair(pair, titles) for pair in pairs)
    more = "".join(
        f"<details><summary>Episode {pair.number}</summary>{html}</details>"
        for pair, html in zip(pairs[1:], others, strict=True)
    )
    return (
        '<p class="lead">One held-out episode, from the same seed, by the policy that this run '
        "started from and by the trained one. Chosen: short episodes that failed before and "
        f"succeed after, where there are any.</p>\n<h3>Episode {pairs[0].number}</h3>{first}{more}"
    )


def choose_pairs(before: Sequence[Trajectory], after: Sequence[Trajectory]) -> list[Pair]:
    """Episodes of equal seeds that both policies finished: first those in which only the
    trained one succeeds, in more than one step; short ones before long ones."""
    started = {trajectory.seed: trajectory for trajectory in before if trajectory.is_finished}
    pairs = [
        Pair(number, started[one.seed], one)
        for number, one in enumerate(after, start=1)
        if one.is_finished and one.seed in started
    ]
    pairs.sort(
        key=lambda pair: (
            _rank(pair),
            len(pair.after.steps) == 1,
            len(pair.before.steps) + len(pair.after.steps),
        )
    )
    return pairs[:MOST_EPISODES]


def _rank(pair: Pair) -> int:
    is_gain = pair.after.success and not pair.before.success
    return 0 if is_gain else 1 if pair.after.success else 2


def _pair(pair: Pair, titles: tuple[str, str]) -> str:
    columns = "".join(
        _episode(trajectory, title)
        for trajectory, title in zip((pair.before, pair.after), titles, strict=True)
    )
    return f'<div class="side-by-side">{columns}</div>'


def _episode(trajectory: Trajectory, title: str) -> str:
    outcome = "success" if trajectory.success else "failure"
    steps = [*map(_step, trajectory.steps)]
    first, rest = steps[:MOST_STEPS], steps[MOST_STEPS:]
    return (
        f'<article><h4>{escape(title)} <span class="badge is-{outcome}">{outcome}</span> '
        f"<small>return {decimal(trajectory.total_reward)}, "
        f"{counted(len(steps), 'step', 'steps')}</small></h4>"
        f'<ol class="static">{"".join(first)}</ol>{_folded_steps(rest)}</article>'
    )


def _folded_steps(steps: Sequence[str]) -> str:
    if not steps:
        return ""
    return (
        f"<details><summary>{counted(len(steps), 'more step', 'more steps')}</summary>"
        f'<ol class="static">{"".join(steps)}</ol></details>'
    )


def _step(step: Step) -> str:
    images = "".join(
        image_element(embedded(image), width=_IMAGE_WIDTH, described="What the model saw")
        for image in step.prompt.images
    )
    kind = "Action" if step.action.is_valid else "Invalid response"
    return (
        f'<li>{images}<div class="text"><pre>{escape(step.completion.text)}</pre>'
        f"{claims_list(shown_thoughts(step))}"
        f"<p>{kind}: <code>{escape(step.action.action)}</code>, reward {decimal(step.reward)}</p>"
        "</div></li>"
    )


def write_report(run: str | Path) -> Path:
    """Writes `report.html` into a run folder, and returns its path.

    An unchanged run gives the same bytes again.

    Raises:
        ForethoughtError: the folder is no run, a file in it is damaged, or the page
            cannot be written.
    """
    folder = RunFolder(Path(run))
    page = render(read_run(folder.path))
    path = folder.report_path
    write_text(path, page)
    return path


def render(run: RunRecord) -> str:
    """The page as text."""
    replay = _replay(run)
    sections = (
        Section("replay", "Replay", replay.html),
        Section("before-after", "Before and after", before_after_section(run)),
        Section("results", "Results", table_section(run)),
        Section("curves", "Curves", curves_section(run) + timing_section(run)),
        Section("preferences", "Preference pairs", preferences_section(run)),
        Section("faithfulness", "Causal faithfulness", faithfulness_section(run.faithfulness)),
        Section("setup", "Setup", setup_section(run)),
    )
    header = (
        '<a class="skip" href="#replay">Skip to the replay</a>\n'
        f'<header class="top">\n{header_section(run)}\n</header>\n'
    )
    body = header + sections_html(sections)
    return document(title=page_title(run), body=body, replay_data=replay.data)


def _replay(run: RunRecord) -> ReplaySection:
    episodes = run.episodes
    if episodes is None:
        return no_replay("No episodes are stored: there is nothing to replay yet.")
    source = (
        "Held-out episodes"
        if episodes.played_for == "evaluation"
        else f"Training episodes of {episodes.file_name}, as no held-out ones are stored"
    )
    return replay_section(select_episodes(episodes.trajectories), source)
