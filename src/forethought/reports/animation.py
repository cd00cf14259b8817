"""An episode as an animated GIF: what the agent saw, and beneath it what it thought and did.

Where the environment has no images, its text is drawn in their place.
"""

import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import Literal, NamedTuple

import matplotlib
from PIL import Image, ImageDraw, ImageFont

from forethought.durable import write_bytes
from forethought.environments.chess.notation import find_diagram
from forethought.errors import ConfigError, visible
from forethought.reports.inputs import RunRecord, read_run
from forethought.reports.markup import THIN, decimal
from forethought.reports.replay import Selected, select_episodes
from forethought.types import Step

WIDTH = 560
"""Pixels, as all below."""
_MARGIN = 20
_IMAGE = 300
"""Smaller images grow by a whole factor up to this; larger ones shrink to it."""
_LETTER, _LINE = 14, 19
"""Size of the letters, and from one line to the next."""
_MOST_LINES = 14
"""Lines of an observation, and of thoughts: what goes on is cut."""
STEP_MS, END_MS = 1500, 3500
"""How long a step is shown, and how long the last one is."""

_PAPER, _RULE = "#ffffff", "#d8dbe0"
_INK, _SOFT, _ACCENT = "#1a1d23", "#5a616d", "#0060a8"
_GOOD, _BAD = "#00735a", "#b34200"

Weight = Literal["regular", "bold"]


class _Text(NamedTuple):
    """One line of a frame."""

    text: str
    color: str = _INK
    weight: Weight = "regular"


def write_gif(run: str | Path, episode: int | None = None) -> Path:
    """Writes `episode_N.gif` into a run folder, and returns its path.

    Args:
        run: the folder.
        episode: its number in the report, from 1; by default the one that the report opens on.

    Raises:
        ForethoughtError: the folder is no run, a file in it is damaged, there is no such
            episode, or the file cannot be written.
    """
    folder = Path(run)
    record = read_run(folder)
    selected = _selected(record, folder, episode)
    path = folder / f"episode_{selected.number}.gif"
    write_bytes(path, animate(selected, f"{record.algorithm.upper()} on {_environment(record)}"))
    return path


def animate(selected: Selected, title: str) -> bytes:
    """The file: one frame for each step, all of one size."""
    frames = [*_frames(selected, title)]
    height = max(frame.height for frame in frames)
    drawn = [_as_high(frame, height) for frame in frames]
    file = BytesIO()
    drawn[0].save(
        file,
        format="GIF",
        save_all=True,
        append_images=drawn[1:],
        duration=[STEP_MS] * (len(drawn) - 1) + [END_MS],
        loop=0,
    )
    return file.getvalue()


def _environment(record: RunRecord) -> str:
    return record.config.environment.id


def _selected(record: RunRecord, folder: Path, number: int | None) -> Selected:
    evaluate = f"`forethought evaluate {folder}` stores some"
    if record.episodes is None:
        raise ConfigError(f"{folder}: got a run without episodes to draw — {evaluate}")
    trajectories = record.episodes.trajectories
    if number is None:
        selection = select_episodes(trajectories)
        if not selection.episodes:
            raise ConfigError(f"{folder}: got a run without an episode that has steps — {evaluate}")
        return selection.episodes[selection.opening]
    if not 1 <= number <= len(trajectories):
        expected = f"1 to {len(trajectories)}: those of {record.episodes.file_name}"
        raise ConfigError(f"--gif is {number} — expected {expected}")
    trajectory = trajectories[number - 1]
    if not trajectory.steps:
        raise ConfigError(f"--gif is {number} — expected an episode with steps; this one has none")
    return Selected(number, trajectory)


class _Seen(NamedTuple):
    """An observation as it is drawn: images, or text where there are none."""

    images: list[Image.Image]
    text: list[_Text]

    @property
    def height(self) -> int:
        return sum(image.height for image in self.images) + _LINE * len(self.text)


def _frames(selected: Selected, title: str) -> Iterator[Image.Image]:
    steps = selected.trajectory.steps
    returns = [*accumulate(step.reward for step in steps)]
    seen = [_seen(step) for step in steps]
    room = max(one.height for one in seen)
    for index, (step, so_far) in enumerate(zip(steps, returns, strict=True)):
        place = selected.trajectory.first_step + index + 1
        last = selected.trajectory.first_step + len(steps)
        head = _Text(f"{title}, episode {selected.number}, step {place} of {last}", _SOFT)
        yield _frame(head, seen[index], room, [*_said(step), _reward(step, so_far)])


def _seen(step: Step) -> _Seen:
    images = [_scaled(Image.fromarray(image)) for image in step.prompt.images]
    return _Seen(images, [] if images else _observation(step))


def _frame(head: _Text, seen: _Seen, room: int, below: Sequence[_Text]) -> Image.Image:
    """A line, the observation in as much room as the largest takes, a rule, lines."""
    height = 2 * _MARGIN + 3 * _MARGIN // 2 + room + _LINE * (1 + len(below))
    frame = Image.new("RGB", (WIDTH, height), _PAPER)
    draw = ImageDraw.Draw(frame)
    top = _write(draw, [head], _MARGIN) + _MARGIN // 2
    y = top
    for image in seen.images:
        frame.paste(image, ((WIDTH - image.width) // 2, y))
        y += image.height
    _write(draw, seen.text, y)
    y = top + room + _MARGIN // 2
    draw.line([(_MARGIN, y), (WIDTH - _MARGIN, y)], fill=_RULE)
    _write(draw, below, y + _MARGIN // 2)
    return frame


def _write(draw: ImageDraw.ImageDraw, lines: Sequence[_Text], y: int) -> int:
    """Where the next line would be."""
    for line in lines:
        draw.text((_MARGIN, y), line.text, fill=line.color, font=_font(line.weight))
        y += _LINE
    return y


def _scaled(image: Image.Image) -> Image.Image:
    """Small images by whole factors, so that every pixel stays a square."""
    larger = max(image.size)
    if larger <= _IMAGE:
        factor = _IMAGE // larger
        return image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
    size = (max(1, image.width * _IMAGE // larger), max(1, image.height * _IMAGE // larger))
    return image.resize(size, Image.Resampling.LANCZOS)


def _as_high(frame: Image.Image, height: int) -> Image.Image:
    """On paper of this height, in the few colors that a GIF has."""
    paper = Image.new("RGB", (WIDTH, height), _PAPER)
    paper.paste(frame, (0, 0))
    return paper.quantize(dither=Image.Dither.NONE)


def _observation(step: Step) -> list[_Text]:
    """The end of the prompt, where the newest observation is."""
    text = find_diagram(step.state_key) or step.prompt.messages[-1].text
    return [_Text(line) for line in _wrapped(text, keep="end")]


def _said(step: Step) -> list[_Text]:
    """Thoughts, and the action that was executed."""
    thoughts = _thoughts(step)
    lines = [_Text(line, _SOFT) for line in _wrapped(thoughts, keep="start")] if thoughts else []
    valid, drawn = step.action.is_valid, step.action.was_randomized
    kind = "action" if valid else "invalid; random action" if drawn else "invalid"
    action = " ".join(step.action.action.split()) or "no action"
    [shown, *_] = _wrapped(f"{kind}: {action}", keep="start")
    return [*lines, _Text(shown, _ACCENT if valid else _BAD, "bold")]


def _thoughts(step: Step) -> str:
    """The completion up to its action, less the braces and commas of its form."""
    text, offsets = step.completion.text, step.completion.token_offsets
    start = step.action.action_span.start
    first = offsets[start] if start < len(offsets) else 0
    key = text.find('"action"', first)  # Its token may begin before it.
    text = text[: first or None] if key < 0 else text[:key]
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line.strip('{}",'))


def _reward(step: Step, so_far: float) -> _Text:
    color = _GOOD if step.reward > 0 else _BAD if step.reward < 0 else _SOFT
    end = ", the episode ends" if step.terminated or step.truncated else ""
    return _Text(f"reward {decimal(step.reward)}, return {decimal(so_far)}{end}", color)


def _wrapped(text: str, *, keep: Literal["start", "end"]) -> list[str]:
    """Lines as wide as a frame, at least one; of many those at the start or at the end."""
    columns = int((WIDTH - 2 * _MARGIN) / _font("regular").getlength("0"))
    plain = visible(text).replace("\t", "    ").replace(THIN, " ")
    lines = [
        part
        for line in plain.splitlines()
        for part in textwrap.wrap(line, columns, drop_whitespace=False, tabsize=4) or [""]
    ]
    if len(lines) > _MOST_LINES and keep == "end":
        return ["…", *lines[-_MOST_LINES + 1 :]]
    if len(lines) > _MOST_LINES:
        return [*lines[: _MOST_LINES - 1], "…"]
    return lines or [""]


@cache
def _font(weight: Weight) -> ImageFont.FreeTypeFont:
    """Matplotlib's own, so that every machine draws the same."""
    name = "DejaVuSansMono-Bold.ttf" if weight == "bold" else "DejaVuSansMono.ttf"
    return ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name, _LETTER)
