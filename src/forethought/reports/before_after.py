"""One episode twice, side by side: by the policy that a run began with, and by its own."""

from collections.abc import Sequence
from typing import NamedTuple

from forethought.reports.formatting import counted, decimal
from forethought.reports.images import ImageTable
from forethought.reports.inputs import RunRecord
from forethought.reports.markup import escape
from forethought.reports.replay import shown_thoughts
from forethought.reports.static_replay import claims_list
from forethought.types import Step, Trajectory

MOST_EPISODES = 2
MOST_STEPS = 6
_PICTURE_WIDTH = 96


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
    shown = "".join(_pair(pair, titles) for pair in pairs)
    return (
        '<section id="before-after">\n<h2>Before and after</h2>\n'
        "<p>The same held-out episode by the policy that this run began with and by the trained "
        "one; where there are such, episodes that were lost before and won after.</p>\n"
        f"{shown}\n</section>"
    )


def choose_pairs(before: Sequence[Trajectory], after: Sequence[Trajectory]) -> list[Pair]:
    """Episodes of equal seeds that both policies finished: those first that only the trained
    one won, the shorter ones before the longer ones."""
    started = {trajectory.seed: trajectory for trajectory in before if trajectory.is_finished}
    pairs = [
        Pair(number, started[one.seed], one)
        for number, one in enumerate(after, start=1)
        if one.is_finished and one.seed in started
    ]
    pairs.sort(key=lambda pair: (_rank(pair), len(pair.before.steps) + len(pair.after.steps)))
    return pairs[:MOST_EPISODES]


def _rank(pair: Pair) -> int:
    is_gain = pair.after.success and not pair.before.success
    return 0 if is_gain else 1 if pair.after.success else 2


def _pair(pair: Pair, titles: tuple[str, str]) -> str:
    columns = "".join(
        _episode(trajectory, title)
        for trajectory, title in zip((pair.before, pair.after), titles, strict=True)
    )
    return f'<h3>Episode {pair.number}</h3>\n<div class="side-by-side">{columns}</div>'


def _episode(trajectory: Trajectory, title: str) -> str:
    outcome = "success" if trajectory.success else "failure"
    pictures = ImageTable()
    steps = "".join(_step(step, pictures) for step in trajectory.steps[:MOST_STEPS])
    left = len(trajectory.steps) - MOST_STEPS
    more = (
        f'<p class="footnote">{counted(left, "more step", "more steps")}.</p>' if left > 0 else ""
    )
    return (
        f'<article><h4>{escape(title)} <span class="badge is-{outcome}">{outcome}</span> '
        f"<small>return {decimal(trajectory.total_reward)}, "
        f"{counted(len(trajectory.steps), 'step', 'steps')}</small></h4>"
        f'<ol class="static">{steps}</ol>{more}</article>'
    )


def _step(step: Step, pictures: ImageTable) -> str:
    images = "".join(
        f'<img width="{_PICTURE_WIDTH}" class="pixels" alt="What the model saw" '
        f'src="{pictures.pictures[pictures.number(image)].address}">'
        for image in step.prompt.images
    )
    kind = "Action" if step.action.is_valid else "Invalid response"
    return (
        f'<li>{images}<div class="text"><pre>{escape(step.completion.text)}</pre>'
        f"{claims_list(shown_thoughts(step))}"
        f"<p>{kind}: <code>{escape(step.action.action)}</code>, reward {decimal(step.reward)}</p>"
        "</div></li>"
    )
