"""Replays as HTML: the viewer, and one episode as plain HTML for readers without JavaScript."""

from string import Template
from typing import NamedTuple

from forethought.reports.markup import asset, counted, decimal, embed_json, escape, image_element
from forethought.reports.replay import (
    Replay,
    ReplayEpisode,
    ReplayStep,
    Selection,
    ShownThoughts,
    Token,
    make_replay,
)

_IMAGE_WIDTH = 192
"""On the page. Images of 32 and 64 pixels, which environments draw for the tiny model, grow by
whole factors."""


class ReplaySection(NamedTuple):
    """The viewer, and what the page's script shows in it."""

    html: str
    data: str
    """JSON that may be inside a script element."""


def replay_section(selection: Selection, source: str) -> ReplaySection:
    """HTML and data of the viewer, or a notice where no episode can be shown.

    Args:
        source: which episodes these are, as the beginning of a sentence.
    """
    note = _what_is_shown(selection, source)
    if not selection.episodes:
        return no_replay(note)
    replay = make_replay(selection)
    html = Template(asset("replay.html")).substitute(
        note=escape(note), static=static_replay(replay)
    )
    return ReplaySection(html, replay.to_json())


def no_replay(notice: str) -> ReplaySection:
    """A sentence in place of the viewer."""
    return ReplaySection(f'<p class="notice">{escape(notice)}</p>', embed_json(None))


def _what_is_shown(selection: Selection, source: str) -> str:
    successes = counted(selection.successes, "success", "successes")
    failures = counted(selection.failures, "failure", "failures")
    shown = counted(len(selection.episodes), "is shown", "are shown")
    sentences = [f"{source}: {successes} and {failures}; {shown}."]
    if selection.unfinished and not selection.successes + selection.failures:
        sentences.append("None of them is finished.")
    if selection.lost:
        lost = counted(selection.lost, "episode was", "episodes were")
        sentences.append(f"{lost} lost to crashes or timeouts of the environment.")
    if selection.opening_rule:
        sentences.append(selection.opening_rule)
    return " ".join(sentences)


def static_replay(replay: Replay) -> str:
    """All steps of the episode that the page opens on, one below the other."""
    episode = replay.episodes[replay.opening]
    steps = "".join(
        _step(replay, step, number)
        for number, step in enumerate(episode.steps, start=episode.first_step + 1)
    )
    return (
        '<p class="notice">The other episodes, and stepping through them, need JavaScript.</p>'
        f'<h3>{_title(episode)}</h3><ol class="static">{steps}</ol>'
    )


def _title(episode: ReplayEpisode) -> str:
    return f"Episode {episode.number}: {episode.outcome}, return {decimal(episode.total)}"


def _step(replay: Replay, step: ReplayStep, number: int) -> str:
    images = "".join(
        image_element(
            replay.images[turn.image],
            width=_IMAGE_WIDTH,
            described=f"What the model saw at step {number}",
        )
        for turn in step.prompt
        if turn.image is not None
    )
    drawn = "" if step.diagram is None else escape(replay.texts[step.diagram])
    diagram = f'<pre class="diagram">{drawn}</pre>' if drawn else ""
    prompt = "\n".join(replay.texts[turn.text] for turn in step.prompt)
    return (
        f'<li value="{number}">{images}{diagram}<div class="text">'
        f'<div class="turn"><pre>{escape(prompt)}</pre></div>'
        f'<pre class="completion">{_completion(step)}</pre>'
        f"{claims_list(step.thoughts)}"
        f'<p class="executed">{_action(step)}</p>'
        f"<p>Reward {decimal(step.reward)}, return so far {decimal(step.return_so_far)}, "
        f"value (critic) {decimal(step.value)}.</p></div></li>"
    )


def _action(step: ReplayStep) -> str:
    """What was executed."""
    if step.was_randomized:
        kind = "Invalid response; action drawn at random"
    else:
        kind = "Action" if step.is_valid else "Invalid response"
    return f"{kind}: <code>{escape(step.action)}</code>" if step.action else f"{kind}: no action"


def _completion(step: ReplayStep) -> str:
    if not step.tokens:
        return escape(step.text)
    return "".join(
        f'<span class="{part}">{"".join(_token(token) for token in step.tokens[start:stop])}</span>'
        for part, start, stop in step.segments
    )


def _token(token: Token) -> str:
    return f'<span class="heat-{token.heat}">{escape(token.text)}</span>'


def claims_list(thoughts: ShownThoughts | None) -> str:
    """HTML of one line per claim, and of what is concluded; empty where there is nothing."""
    if thoughts is None:
        return ""
    lines = [
        _line(f"{claim.name}: {claim.claimed}", is_right=True)
        if claim.is_true
        else _line(f"{claim.name}: {_said(claim.claimed)}, true is {claim.true}", is_right=False)
        for claim in thoughts.claims
    ]
    lines.append(_line(_conclusion(thoughts), is_right=thoughts.is_consistent))
    return f'<ul class="claims">{"".join(lines)}</ul>'


def _conclusion(thoughts: ShownThoughts) -> str:
    """What is concluded, in words."""
    named = " or ".join(thoughts.concluded) or "nothing"
    return f"concludes: {named}" + ("" if thoughts.is_consistent else ", does something else")


def _said(claimed: str | None) -> str:
    return "not said" if claimed is None else claimed


def _line(text: str, *, is_right: bool) -> str:
    kind, mark, spoken = ("right", "✓", "true") if is_right else ("wrong", "✕", "false")
    return f'<li class="{kind}"><span aria-label="{spoken}">{mark}</span> {escape(text)}</li>'
