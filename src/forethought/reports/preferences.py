"""The section of a report that shows what was compared with what, and what won."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from forethought.reports.formatting import counted, decimal, percent
from forethought.reports.histograms import action_probability, draw_odds, odds_of
from forethought.reports.images import EmbeddedImage, ImageTable
from forethought.reports.inputs import Compared, RunRecord
from forethought.reports.markup import escape
from forethought.types import Step

MOST_PAIRS = 8
MOST_DISAGREEMENTS = 4
_PICTURE_WIDTH = 160


def preferences_section(run: RunRecord) -> str:
    """HTML of the last iteration's pairs; empty for a run that compares nothing."""
    if run.compared is None:
        return ""
    body = _odds(run.compared) + _pairs(run.compared) + _disagreements(run.compared)
    return f'<section id="preferences">\n<h2>Preferences</h2>\n{body}\n</section>'


def _odds(compared: Compared) -> str:
    """Fig. 6b of InteractiveCOT: how certain actions are, given their thoughts."""
    played = ((compared.first, compared.early), (compared.last, compared.late))
    every = [odds_of(f"iteration {number}", trajectories) for number, trajectories in played]
    series = [odds for odds in every if odds.probabilities_N.size]
    if not series:
        return ""
    said = "; ".join(
        f"{odds.label}: mean {decimal(float(odds.probabilities_N.mean()))}, "
        f"{percent(float((odds.probabilities_N >= 0.8).mean()))} at 0.8 or more"
        for odds in series
    )
    svg = draw_odds(series, name="action-odds", description=f"p(action | thoughts). {said}")
    return (
        '<div class="charts"><figure><figcaption><b>Certainty of actions</b>'
        f"<small>{escape(said)}.</small></figcaption>{svg}</figure></div>"
    )


class _Shown(NamedTuple):
    winner: Step
    loser: Step
    winner_score: float
    loser_score: float


def _pairs(compared: Compared) -> str:
    shown = _spread(compared)
    if not shown:
        return '<p class="notice">The last iteration found no pairs.</p>'
    items = "".join(_pair(one, number) for number, one in enumerate(shown, start=1))
    count = counted(len(compared.pairs), "pair", "pairs")
    return (
        f'<p class="footnote">Iteration {compared.last} found {count}; {len(shown)} shown. P: how '
        "the episode went from this step on, discounted.</p>"
        f'<ol class="static">{items}</ol>'
    )


def _spread(compared: Compared) -> list[_Shown]:
    """At most so many, evenly spread over all that were found."""
    count = min(MOST_PAIRS, len(compared.pairs))
    chosen = [compared.pairs[index * len(compared.pairs) // count] for index in range(count)]
    steps = [[compared.late[side.trajectory].steps[side.step] for side in pair] for pair in chosen]
    return [
        _Shown(winner, loser, pair.winner.score, pair.loser.score)
        for (winner, loser), pair in zip(steps, chosen, strict=True)
    ]


def _pair(pair: _Shown, number: int) -> str:
    """One prompt, or, where trajectories in different states are compared, each with its own."""
    preferred = _answer("Preferred", pair.winner, pair.winner_score)
    rejected = _answer("Rejected", pair.loser, pair.loser_score)
    if pair.winner.prompt.key == pair.loser.prompt.key:
        body = _asked(pair.winner, preferred + rejected)
    else:
        body = _asked(pair.winner, preferred) + _asked(pair.loser, rejected)
    return f'<li value="{number}">{body}</li>'


def _asked(step: Step, responses: str) -> str:
    prompt = "\n".join(message.text for message in step.prompt.messages)
    return (
        f'{_pictures(step)}<div class="text">'
        f'<div class="turn"><pre>{escape(prompt)}</pre></div>{responses}</div>'
    )


def _answer(title: str, step: Step, score: float) -> str:
    probability = action_probability(step)
    odds = "" if probability is None else f", p(action | thoughts) {decimal(probability)}"
    kind = "action" if step.action.is_valid else "invalid"
    return (
        f"<p><b>{title}</b>: P {decimal(score)}{odds}, {kind} "
        f"<code>{escape(step.action.action)}</code></p>"
        f'<pre class="completion">{escape(step.completion.text)}</pre>'
    )


def _pictures(step: Step) -> str:
    table = ImageTable()
    for image in step.prompt.images:
        table.number(image)
    return "".join(map(_picture, table.pictures))


def _picture(picture: EmbeddedImage) -> str:
    kind = 'class="pixels" ' if picture.width < _PICTURE_WIDTH else ""
    return f'<img {kind}width="{_PICTURE_WIDTH}" alt="What the model saw" src="{picture.address}">'


def _disagreements(compared: Compared) -> str:
    """Answers whose thoughts never name the action that they end in: degradation, as
    InteractiveCOT's Fig. 2 shows it; or thoughts that name no action at all."""
    steps = [step for t in compared.late for step in t.steps if step.action.action]
    apart = [step for step in steps if not names_its_action(step)]
    if not steps:
        return ""
    share = percent(len(apart) / len(steps))
    items = "".join(
        f'<pre class="completion">{escape(step.completion.text)}</pre>'
        for step in _evenly(apart, MOST_DISAGREEMENTS)
    )
    return (
        f"<details><summary>Answers whose thoughts do not name their action "
        f'<span class="count">{share}</span></summary>{items}</details>'
    )


def names_its_action(step: Step) -> bool:
    """Whether the action stands in the text before the `"action"` key, as a word of its own."""
    thoughts, _, _ = step.completion.text.rpartition('"action"')
    action = re.escape(step.action.action)
    return re.search(rf"(?<!\w){action}(?!\w)", thoughts) is not None


def _evenly(steps: Sequence[Step], most: int) -> list[Step]:
    count = min(most, len(steps))
    return [steps[index * len(steps) // count] for index in range(count)]
