"""The episodes of a report as the page's script reads them."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from math import exp, isfinite
from typing import Literal, NamedTuple, TypeVar

from forethought.environments.chess.notation import find_diagram
from forethought.reports.markup import EmbeddedImage, ImageTable, embed_json
from forethought.rollouts.thought_facts import is_consistent
from forethought.types import Completion, ParsedAction, Role, Span, Step, Trajectory

T = TypeVar("T")

MOST_EPISODES = 12


class Selected(NamedTuple):
    """An episode, and its place among all that were played."""

    number: int
    """From 1."""
    trajectory: Trajectory


class Selection(NamedTuple):
    """What is shown, and how much more there is."""

    episodes: list[Selected]
    """In the order in which they were played."""
    opening: int
    """Index in `episodes` of the first failure; where there is none, of the longest success."""
    failures: int
    """Among all finished episodes."""
    successes: int
    lost: int
    """Episodes that the environment did not bring to an end; none of them is shown."""
    unfinished: int
    """Shown only where no episode is finished."""

    @property
    def opening_rule(self) -> str:
        """Why the page opens on this episode, as a sentence; empty where there is no choice."""
        if self.failures:
            return "The replay opens on the first failure."
        if self.successes:
            return "No episode failed: the replay opens on the longest success."
        return ""


def select_episodes(trajectories: Sequence[Trajectory], most: int = MOST_EPISODES) -> Selection:
    """Half failures, half successes, spread evenly over all; one kind fills up for the other."""
    numbered = [Selected(number, t) for number, t in enumerate(trajectories, start=1)]
    played = [s for s in numbered if s.trajectory.failure is None and s.trajectory.steps]
    finished = [s for s in played if s.trajectory.is_finished]
    unfinished = [s for s in played if not s.trajectory.is_finished]
    failures = [s for s in finished if not s.trajectory.success]
    successes = [s for s in finished if s.trajectory.success]
    longest = max(successes, key=lambda s: len(s.trajectory.steps), default=None)
    if finished:
        n_failures = min(len(failures), max(most - most // 2, most - len(successes)))
        chosen = _spread(failures, n_failures) + _spread(successes, most - n_failures, longest)
    else:
        chosen = _spread(unfinished, most)
    episodes = sorted(chosen, key=lambda selected: selected.number)
    opening = failures[0] if failures else longest
    return Selection(
        episodes=episodes,
        opening=0 if opening is None else episodes.index(opening),
        failures=len(failures),
        successes=len(successes),
        lost=len(numbered) - len(played),
        unfinished=len(unfinished),
    )


def _spread(items: Sequence[T], most: int, required: T | None = None) -> list[T]:
    """At most so many of the items, evenly spaced, the first one and the required one included."""
    n = min(most, len(items))
    chosen = [items[index * len(items) // n] for index in range(n)]
    if required is not None and chosen and required not in chosen:
        chosen[-1] = required
    return chosen


HEAT_LIMITS = (0.95, 0.8, 0.5, 0.2, 0.05)
"""A token is the hotter the less probable it was: heat 0 from the first of these on, 5
below the last."""

Part = Literal["thought", "action", "response"]


class Token(NamedTuple):
    text: str
    """Empty for tokens without text of their own: special ones, parts of a character."""
    id: int
    logprob: float | None
    """None where it is not a number."""
    heat: int


class Segment(NamedTuple):
    """Neighboring tokens, half-open."""

    part: Part
    """`response` where the tokens belong neither to the thoughts nor to the action."""
    start: int
    stop: int


class ShownClaim(NamedTuple):
    """One claim, as it is shown."""

    name: str
    claimed: str | None
    true: str
    is_true: bool


class ShownThoughts(NamedTuple):
    """What a step's thoughts claim and conclude."""

    claims: tuple[ShownClaim, ...]
    concluded: tuple[str, ...]
    is_consistent: bool
    """Whether the response names what they conclude."""


Outcome = Literal["success", "failure", "unfinished"]


class Turn(NamedTuple):
    """One message of a prompt."""

    role: Role
    text: int
    """Number of the text in `Replay.texts`."""
    image: int | None
    """Number of the image in `Replay.images`."""


@dataclass(frozen=True)
class ReplayStep:
    """One step, as it is shown. A number that is missing or not finite is None."""

    prompt: tuple[Turn, ...]
    diagram: int | None
    """Number of the text that draws the state for people, in an environment of chess positions."""
    text: str
    """The completion; empty where `tokens` hold it."""
    tokens: tuple[Token, ...]
    segments: tuple[Segment, ...]
    finish_reason: str
    temperature: float
    action: str
    is_valid: bool
    failure: str | None
    was_randomized: bool
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
    metrics: tuple[tuple[str, float | None], ...]
    steps: tuple[ReplayStep, ...]


@dataclass(frozen=True)
class Replay:
    """All episodes of a page; images and texts are here once, and steps refer to them."""

    images: tuple[EmbeddedImage, ...]
    texts: tuple[str, ...]
    """Texts of prompts and diagrams, which repeat."""
    episodes: tuple[ReplayEpisode, ...]
    opening: int
    """Index of the episode that is shown first."""

    def to_json(self) -> str:
        """Safe inside a script element, whatever a model wrote."""
        return embed_json(asdict(self))


def make_replay(selection: Selection) -> Replay:
    """All that the page shows of these episodes."""
    images, texts = ImageTable(), _TextTable()
    episodes = tuple(_episode(one, images, texts) for one in selection.episodes)
    return Replay(tuple(images.images), tuple(texts.number_of), episodes, selection.opening)


class _TextTable:
    """Texts by number, each held once."""

    def __init__(self) -> None:
        self.number_of: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self.number_of.setdefault(text, len(self.number_of))


def _episode(selected: Selected, images: ImageTable, texts: _TextTable) -> ReplayEpisode:
    trajectory = selected.trajectory
    returns = accumulate(step.reward for step in trajectory.steps)
    steps = tuple(
        _step(step, return_so_far, images, texts)
        for step, return_so_far in zip(trajectory.steps, returns, strict=True)
    )
    return ReplayEpisode(
        number=selected.number,
        seed=str(trajectory.seed),
        task_type=trajectory.task_type,
        outcome=_outcome(trajectory),
        total=_finite(trajectory.total_reward),
        first_step=trajectory.first_step,
        metrics=tuple((name, _finite(value)) for name, value in trajectory.metrics),
        steps=steps,
    )


def _step(step: Step, return_so_far: float, images: ImageTable, texts: _TextTable) -> ReplayStep:
    completion, action = step.completion, step.action
    tokens = tokens_of(completion)
    diagram = find_diagram(step.state_key)
    return ReplayStep(
        prompt=tuple(
            Turn(
                message.role,
                texts.number(message.text),
                None if message.image is None else images.number(message.image),
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
        was_randomized=action.was_randomized,
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


def shown_thoughts(step: Step) -> ShownThoughts | None:
    """None where the environment offers no facts."""
    facts = step.thought_facts
    if facts is None:
        return None
    claims = tuple(
        ShownClaim(*claim, claim.is_true) for claim in (*facts.perceived, *facts.inferred)
    )
    return ShownThoughts(claims, facts.concluded_actions, is_consistent(step))


def tokens_of(completion: Completion) -> list[Token]:
    """Joined, the texts are the completion's text."""
    text, starts = completion.text, completion.token_offsets
    if not starts:
        return []
    ends = (*starts[1:], len(text))
    pieces = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    pieces[0] = text[: starts[0]] + pieces[0]
    return [
        Token(piece, token_id, _rounded(logprob), heat(logprob))
        for piece, token_id, logprob in zip(
            pieces, completion.token_ids, completion.logprobs, strict=True
        )
    ]


def segments_of(action: ParsedAction, tokens: int) -> list[Segment]:
    """The spans as a partition of all tokens, in order, without empty parts.

    A token that two spans claim belongs to the action.
    """
    parts: list[Part] = ["response"] * tokens
    spans: tuple[tuple[Part, Span], ...] = (
        ("thought", action.thought_span),
        ("action", action.action_span),
    )
    for part, span in spans:
        for index in range(max(0, span.start), min(span.stop, tokens)):
            parts[index] = part
    starts = [i for i in range(tokens) if i == 0 or parts[i] != parts[i - 1]]
    return [Segment(parts[start], start, stop) for start, stop in pairwise([*starts, tokens])]


def heat(logprob: float) -> int:
    """0 for a token that was nearly certain to 5 for one that was a surprise.

    The hottest, too, where the log-prob is not a number.
    """
    probability = exp(min(logprob, 0.0)) if logprob == logprob else 0.0
    return sum(probability < limit for limit in HEAT_LIMITS)


def _rounded(logprob: float) -> float | None:
    return float(f"{logprob:.4g}") if isfinite(logprob) else None
