"""Conversations as lines of JSON, one trajectory per line, turned into trajectories.

    {"messages": [{"role": "user", "content": "Guess a word."},
                  {"role": "assistant", "content": "crane"},
                  {"role": "user", "content": "b b y g b"},
                  {"role": "assistant", "content": "slate"}],
     "rewards": [-1, 0], "environment_id": "Wordle", "seed": 7, "success": true}

Every assistant's message is a step: it answers the messages before it, and earns the reward of
its number. docs/how_to/data.md has every field.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from forethought.chat.messages import ProtocolError, read_messages
from forethought.data.validation import first_problem
from forethought.errors import StorageError
from forethought.prompts.responses import parse_response
from forethought.targets.reward_map import RewardMap
from forethought.types import (
    Completion,
    FinishReason,
    Message,
    ParsedAction,
    ParseFailure,
    Prompt,
    Span,
    Step,
    Trajectory,
)

_FIELDS = {
    *("messages", "rewards", "environment_id", "seed", "task_type"),
    *("success", "terminated", "truncated"),
}
_FAULTS_SHOWN = 10


@dataclass(frozen=True)
class ChatFormat:
    """How lines are read."""

    environment_id: str | None = None
    """Environment of lines that name none."""
    responses: Literal["json", "json_last", "text"] = "json"
    """json: an assistant's message ends in `"action": "…"`, as models answer here; one that does
    not is an invalid answer. json_last: the last such field counts, whatever follows it. text:
    all of the message is the action."""
    reward_map: RewardMap | None = None
    """What returns must lie in."""
    gamma: float = 1.0
    """Discount per step, at which they must."""


class _Fault(NamedTuple):
    line: int
    """From 1."""
    message: str


def read_chat(path: Path, how: ChatFormat) -> Iterator[Trajectory]:
    """The trajectories of a file, line by line; blank lines are none.

    Raises:
        StorageError: a line is bad; it is named by its number, from 1. Nothing behind it is
            read: see `require_chat`.
    """
    for number, line in _lines(path):
        try:
            yield read_line(line, how, default_seed=number - 1)
        except ProtocolError as error:
            raise StorageError(f"{path}: line {number}: {error}") from None


def require_chat(path: Path, how: ChatFormat) -> int:
    """Reads a whole file, and refuses it if any line is bad.

    Returns:
        The number of trajectories.

    Raises:
        StorageError: the file cannot be read or holds nothing; or lines are bad: the first
            ones are named by their numbers, from 1.
    """
    faults: list[_Fault] = []
    trajectories = 0
    for number, line in _lines(path):
        trajectories += 1
        try:
            read_line(line, how, default_seed=number - 1)
        except ProtocolError as error:
            faults.append(_Fault(number, str(error)))
    if faults:
        shown = "; ".join(f"line {line}: {message}" for line, message in faults[:_FAULTS_SHOWN])
        more = len(faults) - _FAULTS_SHOWN
        raise StorageError(f"{path}: {shown}{f'; and {more} more bad lines' if more > 0 else ''}")
    if not trajectories:
        raise StorageError(f"{path}: got an empty file, expected a JSON object per line")
    return trajectories


def read_line(line: bytes, how: ChatFormat, *, default_seed: int) -> Trajectory:
    """One trajectory.

    Args:
        line: JSON, UTF-8.
        default_seed: where the line names none.

    Raises:
        ProtocolError: what is wrong with it.
    """
    content = _read_object(line)
    messages = read_messages(content["messages"])
    responses = [index for index, message in enumerate(messages) if message.role == "assistant"]
    rewards = _rewards(content["rewards"], len(responses))
    truncated = _flag(content, "truncated", False)
    terminated = _flag(content, "terminated", not truncated)
    steps = [
        _step(messages[:index], messages[index], reward, how)
        for index, reward in zip(responses, rewards, strict=True)
    ]
    steps[-1] = replace(steps[-1], terminated=terminated, truncated=truncated)
    trajectory = Trajectory(
        environment_id=_text(content, "environment_id", how.environment_id),
        seed=_seed(content.get("seed", default_seed)),
        task_type=_text(content, "task_type", ""),
        first_step=0,
        steps=tuple(steps),
        bootstrap_value=None,
        success=_flag(content, "success", False),
        metrics=(),
    )
    problem = first_problem(trajectory, how.reward_map, gamma=how.gamma)
    if problem is not None:
        raise ProtocolError(problem)
    return trajectory


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror}") from error


def _step(asked: Sequence[Message], said: Message, reward: float, how: ChatFormat) -> Step:
    if not asked:
        raise ProtocolError("messages[0] is the assistant's — expected one that it answers")
    if said.image is not None:
        raise ProtocolError("an assistant's message has an image — expected text alone")
    completion = Completion((), (), (), said.text, FinishReason.STOP, temperature=1.0)
    return Step(
        prompt=Prompt(tuple(asked), ()),
        completion=completion,
        action=_action_in(completion, how),
        reward=reward,
        terminated=False,
        truncated=False,
        value=None,
        policy_version=0,
        state_key=_state_key(asked),
        duration_s=0.0,
    )


def _action_in(completion: Completion, how: ChatFormat) -> ParsedAction:
    if how.responses == "text":
        return _all_of(completion.text)
    form = "last_field" if how.responses == "json_last" else "strict"
    return parse_response(completion, None, form=form)


def _all_of(text: str) -> ParsedAction:
    action = text.strip()
    failure = None if action else ParseFailure.NO_ACTION
    return ParsedAction(action, failure is None, failure, Span(0, 0), Span(0, 0))


def _state_key(asked: Sequence[Message]) -> str:
    """The conversation so far is the state."""
    digest = hashlib.blake2b(digest_size=16)
    for message in asked:
        digest.update(json.dumps([message.role, message.text]).encode("ascii"))
        if message.image is not None:
            digest.update(repr(message.image.shape).encode("ascii"))
            digest.update(message.image.tobytes())
    return digest.hexdigest()


def _read_object(line: bytes) -> dict[str, Any]:
    try:
        content: object = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise ProtocolError("got bytes that are no UTF-8") from None
    except (ValueError, RecursionError):
        raise ProtocolError("got no JSON, or part of it, expected one object") from None
    if not isinstance(content, dict):
        raise ProtocolError(f"got a {type(content).__name__}, expected an object")
    found = cast(dict[str, Any], content)
    for name in ("messages", "rewards"):
        if name not in found:
            raise ProtocolError(f"{name} is missing")
    unknown = sorted(found.keys() - _FIELDS)
    if unknown:
        raise ProtocolError(f"got the field {unknown[0]!r}, expected {', '.join(sorted(_FIELDS))}")
    return found


def _rewards(value: object, responses: int) -> list[float]:
    numbers = cast(list[object], value) if isinstance(value, list) else []
    is_number = [isinstance(n, int | float) and not isinstance(n, bool) for n in numbers]
    if not isinstance(value, list) or not all(is_number):
        raise ProtocolError(f"rewards is {value!r} — expected a list of numbers")
    if not responses or len(numbers) != responses:
        raise ProtocolError(
            f"got {len(numbers)} rewards and {responses} messages of the assistant — expected "
            "as many, and one at least"
        )
    try:
        rewards = [float(cast(float, number)) for number in numbers]
    except OverflowError:
        rewards = [math.inf]
    if not all(map(math.isfinite, rewards)):
        raise ProtocolError("a reward is not finite")
    return rewards


def _seed(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ProtocolError(f"seed is {value!r} — expected a whole number, 0 or more")
    return value


def _flag(content: dict[str, Any], name: str, default: bool) -> bool:
    value = content.get(name, default)
    if not isinstance(value, bool):
        raise ProtocolError(f"{name} is {value!r} — expected true or false")
    return value


def _text(content: dict[str, Any], name: str, default: str | None) -> str:
    value = content.get(name, default)
    if value is None:
        raise ProtocolError(f"{name} is missing — name it, or type --{name.replace('_', '-')}")
    if not isinstance(value, str):
        raise ProtocolError(f"{name} is {value!r} — expected text")
    return value
