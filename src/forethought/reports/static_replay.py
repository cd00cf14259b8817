"""The first episode as plain HTML, for readers without JavaScript."""

from forethought.reports.formatting import decimal
from forethought.reports.images import EmbeddedImage
from forethought.reports.markup import escape
from forethought.reports.replay import Replay, ReplayEpisode, ReplayStep, ShownThoughts, Token

_PICTURE_WIDTH = 192
"""On the page. Pictures of 32 and 64 pixels, which worlds draw for the tiny model, grow by
whole factors."""


def static_replay(replay: Replay) -> str:
    """All steps of the first episode, one below the other."""
    episode = replay.episodes[0]
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
    pictures = "".join(
        _picture(replay.pictures[turn.picture], number)
        for turn in step.prompt
        if turn.picture is not None
    )
    drawn = "" if step.diagram is None else escape(replay.texts[step.diagram])
    diagram = f'<pre class="diagram">{drawn}</pre>' if drawn else ""
    prompt = "\n".join(replay.texts[turn.text] for turn in step.prompt)
    return (
        f'<li value="{number}">{pictures}{diagram}<div class="text">'
        f'<div class="turn"><pre>{escape(prompt)}</pre></div>'
        f'<pre class="completion">{_completion(step)}</pre>'
        f"{claims_list(step.thoughts)}"
        f'<p class="executed">{_action(step)}</p>'
        f"<p>Reward {decimal(step.reward)}, return so far {decimal(step.return_so_far)}, "
        f"critic's value {decimal(step.value)}.</p></div></li>"
    )


def _picture(picture: EmbeddedImage, number: int) -> str:
    kind = 'class="pixels" ' if picture.width < _PICTURE_WIDTH else ""
    return (
        f'<img {kind}width="{_PICTURE_WIDTH}" alt="What the model saw at step {number}" '
        f'src="{picture.address}">'
    )


def _action(step: ReplayStep) -> str:
    """What became of the answer."""
    if step.was_randomized:
        kind = "Invalid answer; action drawn at random"
    else:
        kind = "Action" if step.is_valid else "Invalid answer"
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
    lines.append(_line(conclusion(thoughts), is_right=thoughts.is_consistent))
    return f'<ul class="claims">{"".join(lines)}</ul>'


def conclusion(thoughts: ShownThoughts) -> str:
    """What is concluded, in words."""
    named = " or ".join(thoughts.concluded) or "nothing"
    return f"concludes: {named}" + ("" if thoughts.is_consistent else ", does something else")


def _said(claimed: str | None) -> str:
    return "not said" if claimed is None else claimed


def _line(text: str, *, is_right: bool) -> str:
    kind, mark, spoken = ("right", "✓", "true") if is_right else ("wrong", "✕", "false")
    return f'<li class="{kind}"><span aria-label="{spoken}">{mark}</span> {escape(text)}</li>'
