"""The section of a report that shows preference pairs: what was chosen over what."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from forethought.reports.histograms import action_probability, draw_odds, odds_of
from forethought.reports.inputs import Compared, RunRecord
from forethought.reports.markup import counted, decimal, embedded, escape, image_element, percent
from forethought.types import Step

MOST_PAIRS = 8
UNFOLDED = 3
"""Number of these; the others are folded."""
MOST_DISAGREEMENTS = 4
_IMAGE_WIDTH = 160


def preferences_section(run: RunRecord) -> str:
    """HTML of the last iteration's pairs; empty for a run that compares nothing."""
    if run.compared is None:
        return ""
    return _odds(run.compared) + _pairs(run.compared) + _disagreements(run.compared)


def _odds(compared: Compared) -> str:
    """Fig. 6b of InteractiveCOT: the distribution of p(action | thoughts), first and last."""
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
        '<div class="charts"><figure><figcaption><b>p(action | thoughts)</b>'
        f"<small>{escape(said)}.</small></figcaption>{svg}</figure></div>"
    )


class _Shown(NamedTuple):
    chosen: Step
    rejected: Step
    chosen_score: float
    rejected_score: float


def _pairs(compared: Compared) -> str:
    shown = _spread(compared)
    if not shown:
        return '<p class="notice">The last iteration found no pairs.</p>'
    items = [_pair(one, number) for number, one in enumerate(shown, start=1)]
    first, rest = items[:UNFOLDED], items[UNFOLDED:]
    more = (
        f"<details><summary>{counted(len(rest), 'more pair', 'more pairs')}</summary>"
        f'<ol class="static pairs">{"".join(rest)}</ol></details>'
    )
    count = counted(len(compared.pairs), "pair", "pairs")
    return (
        f'<p class="lead">Iteration {compared.last} found {count}; {len(shown)} shown. Marked: '
        "words that only one of the two completions has. Score: what the completions were "
        "compared by, discounted over the rest of the episode.</p>"
        f'<ol class="static pairs">{"".join(first)}</ol>{more if rest else ""}'
    )


def _spread(compared: Compared) -> list[_Shown]:
    """At most so many, evenly spread over all that were found."""
    count = min(MOST_PAIRS, len(compared.pairs))
    places = [compared.pairs[index * len(compared.pairs) // count] for index in range(count)]
    steps = [[compared.late[side.trajectory].steps[side.step] for side in pair] for pair in places]
    return [
        _Shown(chosen, rejected, pair.chosen.score, pair.rejected.score)
        for (chosen, rejected), pair in zip(steps, places, strict=True)
    ]


def _pair(pair: _Shown, number: int) -> str:
    """One prompt above two columns, or, where whole trajectories in different states are
    compared, each column with its own prompt."""
    chosen_text, rejected_text = marked_difference(
        pair.chosen.completion.text, pair.rejected.completion.text
    )
    same_prompt = pair.chosen.prompt.key == pair.rejected.prompt.key
    asked = _prompt(pair.chosen) if same_prompt else ""
    columns = "".join(
        f'<article class="is-{kind}">{"" if same_prompt else _prompt(step)}'
        f"{_completion(kind, step, score, text)}</article>"
        for kind, step, score, text in (
            ("chosen", pair.chosen, pair.chosen_score, chosen_text),
            ("rejected", pair.rejected, pair.rejected_score, rejected_text),
        )
    )
    return f'<li value="{number}">{asked}<div class="side-by-side">{columns}</div></li>'


def marked_difference(one: str, other: str) -> tuple[str, str]:
    """Both texts as HTML; the words that only one of them has are marked."""
    words = [re.findall(r"\w+|\s+|[^\w\s]", text) for text in (one, other)]
    matcher = SequenceMatcher(None, *words, autojunk=False)
    shown: tuple[list[str], list[str]] = ([], [])
    for kind, start_1, stop_1, start_2, stop_2 in matcher.get_opcodes():
        for side, start, stop in ((0, start_1, stop_1), (1, start_2, stop_2)):
            text = escape("".join(words[side][start:stop]))
            if text:
                shown[side].append(text if kind == "equal" else f"<mark>{text}</mark>")
    return "".join(shown[0]), "".join(shown[1])


def _prompt(step: Step) -> str:
    images = "".join(
        image_element(embedded(image), width=_IMAGE_WIDTH, described="What the model saw")
        for image in step.prompt.images
    )
    text = "\n".join(message.text for message in step.prompt.messages)
    return (
        f'<div class="asked">{images}'
        f'<div class="turn" tabindex="0" role="group" aria-label="Prompt">'
        f"<pre>{escape(text)}</pre></div></div>"
    )


def _completion(kind: str, step: Step, score: float, marked: str) -> str:
    probability = action_probability(step)
    odds = "" if probability is None else f", p(action | thoughts) {decimal(probability)}"
    action = "action" if step.action.is_valid else "invalid"
    badge = "success" if kind == "chosen" else "failure"
    return (
        f'<h4><span class="badge is-{badge}">{kind}</span> '
        f"<small>score {decimal(score)}{odds}</small></h4>"
        f'<pre class="completion">{marked}</pre>'
        f'<p class="executed">{action} <code>{escape(step.action.action)}</code></p>'
    )


def _disagreements(compared: Compared) -> str:
    """Completions whose thoughts never name the action that they end in: degradation, as
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
        f"<details><summary>Completions whose thoughts do not name their action "
        f'<span class="count">{share}</span></summary>{items}</details>'
    )


def names_its_action(step: Step) -> bool:
    """Whether the text before the `"action"` key holds the action, as a word of its own."""
    thoughts, _, _ = step.completion.text.rpartition('"action"')
    action = re.escape(step.action.action)
    return re.search(rf"(?<!\w){action}(?!\w)", thoughts) is not None


def _evenly(steps: Sequence[Step], most: int) -> list[Step]:
    count = min(most, len(steps))
    return [steps[index * len(steps) // count] for index in range(count)]
