"""What flows through Forethought, in the order in which it flows.

observation -> prompt -> completion -> parsed action -> step -> trajectory

Every record is frozen and holds plain Python and numpy values: no torch, no
dictionaries. Records that carry arrays compare by identity (`eq=False`),
because numpy's elementwise `==` has no single truth value.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
"""Pixels, uint8 [height, width, 3], RGB."""

Role = Literal["system", "user", "assistant"]


class Span(NamedTuple):
    """A half-open range of token positions in a completion."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


class Metric(NamedTuple):
    """A named number that an environment reports beside reward and success."""

    name: str
    value: float


PROGRESS = "progress"
"""The measure by which an environment tells what share of its goal is met, 0 to 1."""


def progress_in(metrics: tuple[Metric, ...]) -> float | None:
    """What an environment's metrics say about it, if they do."""
    return next((value for name, value in metrics if name == PROGRESS), None)


class ParseFailure(StrEnum):
    """Why a completion held no action that the environment knows."""

    NO_ACTION = "no_action"
    """There is no `"action": "..."` field in the text."""
    UNKNOWN_ACTION = "unknown_action"
    """There is one, but its value is not an action of this environment or state."""
    TRAILING_TEXT = "trailing_text"
    """There is one, but the answer goes on after it."""


class FinishReason(StrEnum):
    """Why generation stopped."""

    STOP = "stop"
    """The model wrote its end-of-sequence token."""
    LENGTH = "length"
    """The limit of new tokens was reached."""


class EnvironmentFailure(StrEnum):
    """Why an episode could not be played to its end. Never a reward of zero."""

    CRASH = "crash"
    TIMEOUT = "timeout"


@dataclass(frozen=True, eq=False)
class Observation:
    """What the agent may know about the present state."""

    text: str | None
    """The state in words, or None where only the image tells it."""
    image: Image | None
    """The state as an image, uint8 [H, W, 3], or None in a text environment."""
    admissible_actions: tuple[str, ...] | None
    """The actions open in this state where the environment lists them, else None:
    then any of the environment's `actions` may be tried."""
    state_key: str
    """Equal exactly when the environment is in the same state."""
    goal: str
    """The task of this episode, in words."""
    task_type: str
    """The kind of task, for tables per kind; one value in most environments."""


@dataclass(frozen=True, eq=False)
class Message:
    """One turn of the conversation that is put to the model."""

    role: Role
    text: str
    image: Image | None = None
    """Shown before the text."""


@dataclass(frozen=True, eq=False)
class Prompt:
    """Messages, and the token ids exactly as they are fed to the model."""

    messages: tuple[Message, ...]
    token_ids: tuple[int, ...]
    """Chat template applied and image placeholders expanded; never rebuilt from text."""

    @cached_property
    def key(self) -> bytes:
        """Equal exactly when ids and pixels are equal: prompts that the model need see once."""
        digest = blake2b(np.asarray(self.token_ids, dtype=np.int64).tobytes(), digest_size=16)
        for image in self.images:
            digest.update(repr(image.shape).encode())
            digest.update(np.ascontiguousarray(image).data)
        return digest.digest()

    @property
    def images(self) -> tuple[Image, ...]:
        return tuple(message.image for message in self.messages if message.image is not None)


@dataclass(frozen=True)
class Completion:
    """What the model answered: the ids that were sampled, and how likely each was."""

    token_ids: tuple[int, ...]
    """Sampled ids, the end-of-sequence token included when it was written.
    Empty for scripted agents, which write text and no tokens."""
    logprobs: tuple[float, ...]
    """Natural-log probability of each id under the distribution it was drawn from, fp32."""
    token_offsets: tuple[int, ...]
    """Where each token's characters start in `text`."""
    text: str
    """The ids decoded, special tokens left out."""
    finish_reason: FinishReason
    temperature: float
    """Temperature of the sampling distribution; 0 means greedy (log-probs then at temperature
    1)."""
    allowed_ids: tuple[tuple[int, ...] | None, ...] = ()
    """Per token, the ids that it was drawn from, None: any; empty where all were free. Log-probs
    are those of the distribution over these ids alone."""

    def __post_init__(self) -> None:
        if self.allowed_ids and len(self.allowed_ids) != len(self.token_ids):
            raise ValueError(
                f"allowed ids for each of {len(self.token_ids)} tokens, or none at all: "
                f"got {len(self.allowed_ids)}"
            )
        if not len(self.token_ids) == len(self.logprobs) == len(self.token_offsets):
            raise ValueError(
                "one log-prob and one offset per token: got "
                f"{len(self.token_ids)} ids, {len(self.logprobs)} log-probs, "
                f"{len(self.token_offsets)} offsets"
            )


@dataclass(frozen=True)
class ParsedAction:
    """What a completion asks the environment to do. Any text gives one: failure is a value."""

    action: str
    """The action to execute; where it is invalid, the raw text tried, or nothing (no field was
    found, or the answer went on after it)."""
    is_valid: bool
    """Whether the completion itself named an action of this environment and state."""
    failure: ParseFailure | None
    thought_span: Span
    """Tokens before the `"action"` key."""
    action_span: Span
    """Tokens from the `"action"` key to the end, end-of-sequence included."""
    was_randomized: bool = False
    """The completion held no valid action and one was drawn uniformly (RL4VLM, Eq. 4.1)."""


class Claim(NamedTuple):
    """Something that a thought says of the present state, beside what is so."""

    name: str
    """What it is about: `current number`."""
    claimed: str | None
    """None: nothing was said of it, though a thought has to."""
    true: str

    @property
    def is_true(self) -> bool:
        return self.claimed == self.true


@dataclass(frozen=True)
class ThoughtFacts:
    """What a response claims before its action, and the truth in the state it was given in."""

    perceived: tuple[Claim, ...]
    """Claims that the observation decides: numbers read, cards named, places where things are."""
    inferred: tuple[Claim, ...]
    """Claims that follow from it: a comparison, a sum, what a formula comes to."""
    concluded_actions: tuple[str, ...]
    """The action that the thought concludes with, or each of those that would carry out what it
    concludes; empty: it names none."""


@dataclass(frozen=True, eq=False)
class Step:
    """One exchange with the environment: the record that every algorithm learns from."""

    prompt: Prompt
    completion: Completion
    action: ParsedAction
    reward: float
    terminated: bool
    """The environment reached an end of its own; the value of what follows is zero."""
    truncated: bool
    """A limit cut the episode; the value of what would follow is not zero."""
    value: float | None
    """The critic's estimate of the discounted return from this state, if there is a critic."""
    policy_version: int
    """How many updates the acting policy had seen."""
    state_key: str
    duration_s: float
    """Wall-clock seconds that the environment took."""
    progress: float | None = None
    """Share of the goal that was met after this step, 0 to 1, in environments that measure it."""
    thought_facts: ThoughtFacts | None = None
    """Where the environment offers them, and the prompt asks for thoughts."""
    strict_format: bool | None = None
    """Whether the response is JSON with exactly the fields that the prompt asks for, in order,
    and nothing after it; None where the prompt asks for no JSON."""


class Origin(NamedTuple):
    """Which episode a trajectory is a part of."""

    environment_id: str
    seed: int
    steps: int
    """Length of the trajectory."""


class Earned(NamedTuple):
    """What a trajectory's steps brought, and how it ended: all that returns are made of."""

    first_step: int
    """Index in the episode of the first reward."""
    rewards: tuple[float, ...]
    """Reward of each step, in order."""
    terminated: bool
    """Whether the environment ended with the last step."""
    bootstrap_value: float | None
    """The critic's value of the state after the last step, where that state is not terminal."""
    failure: EnvironmentFailure | None


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Consecutive steps of one episode, in order."""

    environment_id: str
    seed: int
    """The seed that the episode was reset with."""
    task_type: str
    first_step: int
    """Index in the episode of `steps[0]`: above 0 where an episode spans two collections."""
    steps: tuple[Step, ...]
    bootstrap_value: float | None
    """The critic's value of the state after the last step, where that state is not terminal."""
    success: bool
    """By the environment's own definition; False while the episode is unfinished."""
    metrics: tuple[Metric, ...]
    """The environment's further numbers at the end of the episode; empty while unfinished."""
    failure: EnvironmentFailure | None = None

    @property
    def is_finished(self) -> bool:
        return bool(self.steps) and (self.steps[-1].terminated or self.steps[-1].truncated)

    @property
    def earned(self) -> Earned:
        terminated = bool(self.steps) and self.steps[-1].terminated
        rewards = tuple(step.reward for step in self.steps)
        return Earned(self.first_step, rewards, terminated, self.bootstrap_value, self.failure)

    @property
    def total_reward(self) -> float:
        """Undiscounted sum of the rewards of these steps."""
        return sum(step.reward for step in self.steps)
