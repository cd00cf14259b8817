"""The table of thoughts: are they true, do they lead to the action, do they keep the form?"""

from collections.abc import Sequence

from forethought.evaluation.results import EvaluationRow
from forethought.evaluation.statistics import Rate
from forethought.reports.markup import escape
from forethought.reports.numerals import MISSING, count, percent, percent_interval

_COLUMNS = (
    ("Perception", "claims about the observation that are true"),
    ("All of a step", "steps whose claims about it are all true"),
    ("Inference", "claims that follow from it and are true"),
    ("Consistency", "steps that name the action their thought concludes"),
    ("Strict format", "responses with exactly the fields asked for"),
)


def thoughts_table(rows: Sequence[tuple[str, EvaluationRow]]) -> str:
    """HTML of one line per agent that has any of these figures; empty where none has.

    Args:
        rows: each agent's name as HTML, and what it did.
    """
    with_any = [(title, row) for title, row in rows if row.thoughts.has_any]
    if not with_any:
        return ""
    heads = "".join(
        f'<th scope="col" title="{escape(meaning)}">{escape(title)}</th>'
        for title, meaning in _COLUMNS
    )
    body = "".join(
        f'<tr><th scope="row">{title}</th>{"".join(map(_cell, _rates(row)))}</tr>'
        for title, row in with_any
    )
    meanings = "; ".join(f"{title}: {meaning}" for title, meaning in _COLUMNS)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Table of thoughts">'
        f'<table><thead><tr><th scope="col">Thoughts</th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
        f'<p class="footnote">{escape(meanings)}. Second lines: 95 % intervals (Wilson), and how '
        "many claims or steps were counted.</p>"
    )


def _rates(row: EvaluationRow) -> tuple[Rate | None, ...]:
    rates = row.thoughts
    return (
        *(rates.perception_accuracy, rates.perceived_steps, rates.inference_accuracy),
        *(rates.thought_action_consistency, rates.strict_format),
    )


def _cell(rate: Rate | None) -> str:
    if rate is None:
        return f"<td>{MISSING}</td>"
    interval = f"{percent_interval(rate.interval)} of {count(rate.count)}"
    return f"<td><b>{percent(rate.share)}</b><small>{interval}</small></td>"
