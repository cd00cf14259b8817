"""The episodes of a report as the page's script reads them."""

import math
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Literal, NamedTuple

from forethought.environments.chess.diagram import find_diagram
from forethought.reports.claims import ShownThoughts, shown_thoughts
from forethought.reports.markup import embed_json
from forethought.reports.pictures import Picture, PictureTable
from forethought.reports.selection import Selected
from forethought.reports.tokens import Segment, Token, segments_of, tokens_of
from forethought.types import Role, Step, Trajectory

Outcome = Literal["success", "failure", "unfinished"]


class Turn(NamedTuple):
    """One message of a prompt."""

    role: Role
    text: int
    """Number of the text in `Replay.texts`."""
    picture: int | None
    """Number of the picture in `Replay.pictures`."""


@dataclass(frozen=True)
class ReplayStep:
    """One step, as it is shown. A number that is missing or not finite is None."""

    prompt: tuple[Turn, ...]
    diagram: int | None
    """Number of the text that draws the state for people, in a world of chess positions."""
    text: str
    """The completion; empty where `tokens` hold it."""
    tokens: tuple[Token, ...]
    segments: tuple[Segment, ...]
    finish_reason: str
    temperature: float
    action: str
    is_valid: bool
    failure: str | None
    was_randomised: bool
    reward: float | None
    return_so_far: float | None
    """Sum of the rewards up to this one, of the steps that are here."""
    value: float | None
    state_key: str
    terminated: bool
    truncated: bool
    thoughts: ShownThoughts | None
    """What they claim, and the truth, where the environment can tell."""


@dataclass(frozen=True)
class ReplayEpisode:
    """One episode, as the page's script reads it."""

    number: int
    """Among all that were played, from 1."""
    seed: str
    """Seeds are larger than a JavaScript number can hold."""
    task_type: str
    outcome: Outcome
    total: float | None
    """The return of the steps that are here."""
    first_step: int
    """Above 0 where the beginning was played, and stored, earlier."""
    measures: tuple[tuple[str, float | None], ...]
    steps: tuple[ReplayStep, ...]


@dataclass(frozen=True)
class Replay:
    """All episodes of a page; pictures and texts stand here once, and steps refer to them."""

    pictures: tuple[Picture, ...]
    texts: tuple[str, ...]
    """Of prompts and diagrams, which repeat."""
    episodes: tuple[ReplayEpisode, ...]

    def to_json(self) -> str:
        """May stand inside a script element, whatever a model wrote."""
        return embed_json(asdict(self))


def make_replay(selected: list[Selected]) -> Replay:
    """All that the page shows of these episodes."""
    pictures, texts = PictureTable(), _TextTable()
    episodes = tuple(_episode(one, pictures, texts) for one in selected)
    return Replay(tuple(pictures.pictures), tuple(texts.number_of), episodes)


class _TextTable:
    """Texts by number, each held once."""

    def __init__(self) -> None:
        self.number_of: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self.number_of.setdefault(text, len(self.number_of))


def _episode(selected: Selected, pictures: PictureTable, texts: _TextTable) -> ReplayEpisode:
    trajectory = selected.trajectory
    returns = accumulate(step.reward for step in trajectory.steps)
    steps = tuple(
        _step(step, return_so_far, pictures, texts)
        for step, return_so_far in zip(trajectory.steps, returns, strict=True)
    )
    return ReplayEpisode(
        number=selected.number,
        seed=str(trajectory.seed),
        task_type=trajectory.task_type,
        outcome=_outcome(trajectory),
        total=_finite(trajectory.total_reward),
        first_step=trajectory.first_step,
        measures=tuple((name, _finite(value)) for name, value in trajectory.measures),
        steps=steps,
    )


def _step(
    step: Step, return_so_far: float, pictures: PictureTable, texts: _TextTable
) -> ReplayStep:
    completion, action = step.completion, step.action
    tokens = tokens_of(completion)
    diagram = find_diagram(step.state_key)
    return ReplayStep(
        prompt=tuple(
            Turn(
                message.role,
                texts.number(message.text),
                None if message.image is None else pictures.number(message.image),
            )
            for message in step.prompt.messages
        ),
        diagram=None if diagram is None else texts.number(diagram),
        text="" if tokens else completion.text,
        tokens=tuple(tokens),
        segments=tuple(segments_of(action, len(tokens))),
        finish_reason=completion.finish_reason.value,
        temperature=completion.temperature,
        action=action.action,
        is_valid=action.is_valid,
        failure=None if action.failure is None else action.failure.value,
        was_randomised=action.was_randomised,
        reward=_finite(step.reward),
        return_so_far=_finite(return_so_far),
        value=_finite(step.value),
        state_key=step.state_key,
        terminated=step.terminated,
        truncated=step.truncated,
        thoughts=shown_thoughts(step),
    )


def _outcome(trajectory: Trajectory) -> Outcome:
    if not trajectory.is_finished:
        return "unfinished"
    return "success" if trajectory.success else "failure"


def _finite(value: float | None) -> float | None:
    """Rounded to seven digits, which is more than is shown."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.7g}")
