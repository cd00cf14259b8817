"""Pieces that several environments are made of: options, the episode's counter, the expert that
chooses at random, reading claims in a response, and transcripts.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import numpy as np

from forethought.environments.contract import Transition
from forethought.errors import ConfigError


@dataclass(frozen=True)
class Option:
    """One keyword argument of an environment's constructor, for listings and for refusals."""

    name: str
    default: Any
    allowed: str
    """The values it may have, in words."""
    meaning: str


def require_option(condition: bool, name: str, value: object, allowed: str) -> None:
    """Refuses a setting, naming it, its value and what it may be.

    Raises:
        ConfigError: `condition` does not hold.
    """
    if not condition:
        raise ConfigError(f"{name} is {value!r} — expected {allowed}")


def is_whole_number(value: object, low: int, high: int) -> bool:
    """Whether `value` is an int (True and False are not) in [low, high]."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def require_whole_number(name: str, value: object, low: int, high: int) -> None:
    """Refuses a setting that is no whole number from `low` to `high`.

    Raises:
        ConfigError: naming it, its value and the range.
    """
    is_fine = is_whole_number(value, low, high)
    require_option(is_fine, name, value, f"a whole number from {low} to {high}")


def is_flag(value: object) -> bool:
    """Whether `value` is True or False, and not something that passes for it."""
    return isinstance(value, bool)


class Episode:
    """Counts the steps and the reward of an episode, and knows when it is over."""

    def __init__(self, limit_steps: int) -> None:
        self.limit_steps = limit_steps
        self.steps = 0
        self.total_reward = 0.0
        """Undiscounted sum of the rewards so far."""
        self.is_over = True
        """True before the first episode: nothing may be done before a reset."""

    def begin(self) -> None:
        """Starts an episode: no steps, no reward."""
        self.steps = 0
        self.total_reward = 0.0
        self.is_over = False

    def require_open(self) -> None:
        """Raises:
        RuntimeError: the episode has ended, or none was started.
        """
        if self.is_over:
            raise RuntimeError("the episode is over — reset it with a seed before acting")

    @property
    def is_last_step(self) -> bool:
        """Whether the step now being taken is the last that the limit allows."""
        return self.steps + 1 >= self.limit_steps

    def record(self, reward: float, *, terminated: bool) -> Transition:
        """Books one step; an episode that did not terminate is truncated at the limit."""
        truncated = not terminated and self.is_last_step
        self.steps += 1
        self.total_reward += reward
        self.is_over = terminated or truncated
        return Transition(reward, terminated, truncated)


ExpertName = Literal["optimal", "random_choice"]
EXPERTS = ("optimal", "random_choice")


def random_choice(actions: Sequence[str], np_random: np.random.Generator, step: int) -> str:
    """One of the actions, each equally likely; the same at every call in the same moment.

    Nothing is drawn from the environment's generator, so what it deals next stays as it is: the
    choice is a digest of the generator's state and of the step.

    Args:
        np_random: the environment's own.
        step: steps of the episode so far.
    """
    digest = sha256(f"{np_random.bit_generator.state} {step}".encode()).digest()
    return actions[int.from_bytes(digest[:8]) % len(actions)]


_ACTION_KEY = re.compile(r'"action"\s*:')
_END_OF_THINKING = "</think>"
_TEXT = r'"(?:[^"\\]|\\.)*"'
_VALUE = rf"({_TEXT}|\[[^\[\]]*\]|-?\d+)"


def read_field(response: str, name: str) -> str | None:
    """The value of a JSON field that precedes the first action: a text unquoted, a number or a
    list as it is written. What precedes the end of a thinking block is passed over, as it may
    quote the form. The last such field counts, as in JSON, also where the response is none.

    Returns:
        None where there is no such field, or its value is of another kind.
    """
    said = response[max(response.rfind(_END_OF_THINKING), 0) :]
    key = _ACTION_KEY.search(said)
    before = said[: key.start()] if key else said
    found = re.findall(rf'"{re.escape(name)}"\s*:\s*{_VALUE}', before, re.DOTALL)
    return _unquoted(found[-1]) if found else None


def last_match(pattern: str, text: str | None) -> str | None:
    """What the pattern's one group holds at its last place in a text; None: nowhere."""
    found: list[str] = re.findall(pattern, text or "")
    return found[-1] if found else None


def concluded(pattern: str, thoughts: str | None) -> tuple[str, ...]:
    """The action that a pattern finds last in thoughts, as `ThoughtFacts` has it."""
    action = last_match(pattern, thoughts)
    return () if action is None else (action,)


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    try:
        return str(json.loads(value, strict=False))
    except ValueError:
        return value[1:-1]


MAX_ACTION = 200
"""Characters of an action that are kept; no action of the shipped environments is as long."""

_MARK = "> "


class Turn(NamedTuple):
    """One action, and what the environment said to it."""

    action: str
    reply: str
    """One line."""


def write_transcript(turns: Iterable[Turn]) -> str:
    """Two lines per turn: the action after "> ", escaped as in JSON, and the reply.

    Actions are any text, so they are escaped and cut: no action can pass for a reply.
    """
    return "\n".join(f"{_MARK}{json.dumps(_cut(action))[1:-1]}\n{reply}" for action, reply in turns)


def read_transcript(text: str) -> tuple[Turn, ...]:
    """The turns of a transcript.

    Raises:
        ValueError: the text was not written by `write_transcript`.
    """
    lines = text.split("\n") if text else []
    marked = all(line.startswith(_MARK) for line in lines[::2])
    if len(lines) % 2 or not marked:
        raise ValueError(
            f"got {text[:80]!r}, expected lines of actions (> ...) and replies in turn"
        )
    actions = (_unescape(line.removeprefix(_MARK)) for line in lines[::2])
    return tuple(Turn(action, reply) for action, reply in zip(actions, lines[1::2], strict=True))


def _unescape(action: str) -> str:
    return json.loads(f'"{action}"') if "\\" in action else action


def _cut(action: str) -> str:
    return action if len(action) <= MAX_ACTION else action[: MAX_ACTION - 1] + "…"
