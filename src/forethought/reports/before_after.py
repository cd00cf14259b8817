"""One episode twice, side by side: by the policy that a run began with, and by its own."""

from collections.abc import Sequence
from typing import NamedTuple

from forethought.reports.formatting import counted, decimal
from forethought.reports.images import embedded, image_element
from forethought.reports.inputs import RunRecord
from forethought.reports.markup import escape
from forethought.reports.replay import shown_thoughts
from forethought.reports.replay_html import claims_list
from forethought.types import Step, Trajectory

MOST_EPISODES = 2
MOST_STEPS = 3
"""Of each episode; the others are folded."""
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
        f'<ol class="static">{"".join(first)}</ol>{_folded(rest)}</article>'
    )


def _folded(steps: Sequence[str]) -> str:
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
