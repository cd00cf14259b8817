"""Trajectories as rows of a flat table: one row per step, and back, exactly.

What belongs to the whole trajectory is repeated on each of its rows, so that a
row means something by itself in pandas or `datasets`. A trajectory without
steps (the environment crashed before the first one) is one row whose `step` and
whose other columns about a step are null.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forethought.rollouts.shard_files import ImageDecoder, ImageEncoder
from forethought.rollouts.soundness import require_filled
from forethought.rollouts.thought_facts import FIELDS as FACT_FIELDS
from forethought.rollouts.thought_facts import fact_columns, facts_of
from forethought.types import (
    Completion,
    Earned,
    EnvironmentFailure,
    FinishReason,
    Message,
    Metric,
    Origin,
    ParsedAction,
    ParseFailure,
    Prompt,
    Span,
    Step,
    Trajectory,
)

Row = dict[str, Any]
"""One row by column name; lives between the two halves of this file only."""

Table: TypeAlias = Any
"""`pyarrow.Table`, whose package carries no types."""

SCHEMA_VERSION = "5"
"""Raise it with any change below: a shard of another version is refused, not guessed at."""

_MESSAGE = pa.struct([("role", pa.string()), ("text", pa.string()), ("image", pa.binary())])
_MEASURE = pa.struct([("name", pa.string()), ("value", pa.float64())])

SCHEMA = pa.schema(
    [
        # The trajectory, repeated on each of its rows.
        pa.field("trajectory", pa.int64(), nullable=False),  # counts from 0 within the shard
        pa.field("environment_id", pa.string(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("task_type", pa.string(), nullable=False),
        pa.field("first_step", pa.int64(), nullable=False),
        pa.field("n_steps", pa.int64(), nullable=False),
        pa.field("bootstrap_value", pa.float64()),
        pa.field("success", pa.bool_(), nullable=False),
        pa.field("measures", pa.list_(_MEASURE), nullable=False),
        pa.field("environment_failure", pa.string()),
        # The step; `step` is its index in the episode, first_step + row.
        pa.field("step", pa.int64()),
        pa.field("messages", pa.list_(_MESSAGE)),  # image: PNG bytes, or null
        pa.field("prompt_token_ids", pa.list_(pa.int32())),
        pa.field("completion_token_ids", pa.list_(pa.int32())),
        pa.field("completion_logprobs", pa.list_(pa.float32())),
        pa.field("completion_token_offsets", pa.list_(pa.int32())),
        pa.field("completion_text", pa.string()),
        pa.field("finish_reason", pa.string()),
        pa.field("temperature", pa.float64()),
        pa.field("action", pa.string()),
        pa.field("action_is_valid", pa.bool_()),
        pa.field("action_failure", pa.string()),
        pa.field("action_was_randomized", pa.bool_()),
        pa.field("thought_start", pa.int32()),  # half-open ranges of completion tokens
        pa.field("thought_stop", pa.int32()),
        pa.field("action_start", pa.int32()),
        pa.field("action_stop", pa.int32()),
        pa.field("reward", pa.float64()),
        pa.field("terminated", pa.bool_()),
        pa.field("truncated", pa.bool_()),
        pa.field("value", pa.float64()),
        pa.field("policy_version", pa.int64()),
        pa.field("state_key", pa.string()),
        pa.field("duration_s", pa.float64()),
        pa.field("progress", pa.float64()),
        pa.field("allowed_ids", pa.list_(pa.list_(pa.int32()))),
        *FACT_FIELDS,
    ]
)

_SCHEMA_3 = pa.schema(list(SCHEMA)[: -len(FACT_FIELDS)])
_SCHEMA_2 = _SCHEMA_3.remove(_SCHEMA_3.get_field_index("allowed_ids"))
_SCHEMA_1 = _SCHEMA_2.remove(_SCHEMA_2.get_field_index("progress"))
OLDER = {"1": _SCHEMA_1, "2": _SCHEMA_2, "3": _SCHEMA_3}
"""Versions that are still read: 1, in which no environment told of its progress, 2, in which no
answer was held to actions, and 3, in which no thought was compared with the truth."""

EARNED_COLUMNS = (
    *("trajectory", "first_step", "n_steps", "bootstrap_value", "environment_failure"),
    *("step", "reward", "terminated"),
)
"""What `earned_from_table` needs: no text, no image."""

ORIGIN_COLUMNS = ("trajectory", "n_steps", "environment_id", "seed")
"""What `origins_from_table` needs."""

_Record = TypeVar("_Record")

_UNENCODABLE = re.compile(r"[\ud800-\udfff\ufffe]")
_ESCAPE = re.compile(r"\ufffe([0-9a-f]{4})")


def to_table(numbered: Sequence[tuple[int, Trajectory]], images: ImageEncoder) -> Table:
    """Rows of these trajectories, in order.

    Args:
        numbered: each trajectory with its number in the shard.
        images: shared by the whole shard, so that equal images are encoded once.

    Raises:
        ValueError: a log-prob is not a float32 value, or an image is not uint8 [H, W, 3].
    """
    rows = [row for number, trajectory in numbered for row in _rows(number, trajectory, images)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def from_table(table: Table, images: ImageDecoder) -> Iterator[tuple[int, Trajectory]]:
    """The trajectories whose rows these are, with their numbers; equal images share one array.

    Raises:
        ValueError: rows of a trajectory are missing.
    """
    return _by_trajectory(table, lambda first, steps: _trajectory(first, steps, images))


def earned_from_table(table: Table) -> Iterator[tuple[int, Earned]]:
    """The same of what the trajectories earned alone, from `EARNED_COLUMNS`.

    Raises:
        ValueError: rows of a trajectory are missing.
    """
    return _by_trajectory(table, _earned)


def origins_from_table(table: Table) -> Iterator[tuple[int, Origin]]:
    """The same of where the trajectories come from alone, from `ORIGIN_COLUMNS`."""
    numbers = table.column("trajectory").to_numpy()
    firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
    for row in table.take(firsts).to_pylist():
        name = _decoded(row["environment_id"])
        yield row["trajectory"], Origin(name, row["seed"], row["n_steps"])


def _by_trajectory(
    table: Table, record: Callable[[Row, list[Row]], _Record]
) -> Iterator[tuple[int, _Record]]:
    """Each trajectory's number, and the record of its first row and of its steps' rows."""
    rows: list[Row] = table.to_pylist()
    for number, own in groupby(rows, key=lambda row: row["trajectory"]):
        mine = list(own)
        steps = [row for row in mine if row["step"] is not None]
        expected = mine[0]["n_steps"]
        if len(steps) != expected:
            raise ValueError(f"trajectory {number} has {expected} steps, {len(steps)} are here")
        yield number, record(mine[0], steps)


def _rows(number: int, trajectory: Trajectory, images: ImageEncoder) -> Iterator[Row]:
    shared: Row = {
        "trajectory": number,
        "environment_id": _encodable(trajectory.environment_id),
        "seed": trajectory.seed,
        "task_type": _encodable(trajectory.task_type),
        "first_step": trajectory.first_step,
        "n_steps": len(trajectory.steps),
        "bootstrap_value": trajectory.bootstrap_value,
        "success": trajectory.success,
        "measures": [
            {"name": _encodable(measure.name), "value": measure.value}
            for measure in trajectory.metrics
        ],
        "environment_failure": trajectory.failure,
    }
    if not trajectory.steps:
        yield shared
    for index, step in enumerate(trajectory.steps, start=trajectory.first_step):
        yield shared | {"step": index} | _step_columns(step, images)


def _step_columns(step: Step, images: ImageEncoder) -> Row:
    completion, action = step.completion, step.action
    return {
        "messages": [_message_columns(message, images) for message in step.prompt.messages],
        "prompt_token_ids": _int32(step.prompt.token_ids),
        "completion_token_ids": _int32(completion.token_ids),
        "completion_logprobs": _float32(completion.logprobs),
        "completion_token_offsets": _int32(completion.token_offsets),
        "completion_text": _encodable(completion.text),
        "finish_reason": completion.finish_reason,
        "temperature": completion.temperature,
        "action": _encodable(action.action),
        "action_is_valid": action.is_valid,
        "action_failure": action.failure,
        "action_was_randomized": action.was_randomized,
        "thought_start": action.thought_span.start,
        "thought_stop": action.thought_span.stop,
        "action_start": action.action_span.start,
        "action_stop": action.action_span.stop,
        "reward": step.reward,
        "terminated": step.terminated,
        "truncated": step.truncated,
        "value": step.value,
        "policy_version": step.policy_version,
        "state_key": _encodable(step.state_key),
        "duration_s": step.duration_s,
        "progress": step.progress,
        "allowed_ids": [
            None if ids is None else _int32(ids) for ids in step.completion.allowed_ids
        ],
        **fact_columns(step, _encodable),
    }


def _message_columns(message: Message, images: ImageEncoder) -> Row:
    return {
        "role": message.role,
        "text": _encodable(message.text),
        "image": None if message.image is None else images(message.image),
    }


def _trajectory(first: Row, steps: Sequence[Row], images: ImageDecoder) -> Trajectory:
    return Trajectory(
        environment_id=_decoded(first["environment_id"]),
        seed=first["seed"],
        task_type=_decoded(first["task_type"]),
        first_step=first["first_step"],
        steps=tuple(_placed_step(row, images) for row in steps),
        bootstrap_value=first["bootstrap_value"],
        success=first["success"],
        metrics=tuple(Metric(_decoded(m["name"]), m["value"]) for m in first["measures"]),
        failure=_failure(first),
    )


def _earned(first: Row, steps: Sequence[Row]) -> Earned:
    return Earned(
        first_step=first["first_step"],
        rewards=tuple(row["reward"] for row in steps),
        terminated=bool(steps) and steps[-1]["terminated"],
        bootstrap_value=first["bootstrap_value"],
        failure=_failure(first),
    )


def _failure(first: Row) -> EnvironmentFailure | None:
    name = first["environment_failure"]
    return None if name is None else EnvironmentFailure(name)


def _placed_step(row: Row, images: ImageDecoder) -> Step:
    try:
        require_filled(row)
        return _step(row, images)
    except (ValueError, TypeError, KeyError) as error:
        place = f"trajectory {row['trajectory']}, step {row['step']}"
        raise ValueError(f"{place}: {error}") from error


def _step(row: Row, images: ImageDecoder) -> Step:
    return Step(
        prompt=Prompt(
            messages=tuple(_message(columns, images) for columns in row["messages"]),
            token_ids=tuple(row["prompt_token_ids"]),
        ),
        completion=Completion(
            token_ids=tuple(row["completion_token_ids"]),
            logprobs=tuple(row["completion_logprobs"]),
            token_offsets=tuple(row["completion_token_offsets"]),
            text=_decoded(row["completion_text"]),
            finish_reason=FinishReason(row["finish_reason"]),
            temperature=row["temperature"],
            allowed_ids=tuple(
                None if ids is None else tuple(ids) for ids in row.get("allowed_ids") or ()
            ),
        ),
        action=_action(row),
        reward=row["reward"],
        terminated=row["terminated"],
        truncated=row["truncated"],
        value=row["value"],
        policy_version=row["policy_version"],
        state_key=_decoded(row["state_key"]),
        duration_s=row["duration_s"],
        progress=row.get("progress"),
        thought_facts=facts_of(row, _decoded),
        strict_format=row.get("strict_format"),
    )


def _action(row: Row) -> ParsedAction:
    failure = row["action_failure"]
    return ParsedAction(
        action=_decoded(row["action"]),
        is_valid=row["action_is_valid"],
        failure=None if failure is None else ParseFailure(failure),
        thought_span=Span(row["thought_start"], row["thought_stop"]),
        action_span=Span(row["action_start"], row["action_stop"]),
        was_randomized=row["action_was_randomized"],
    )


def _message(columns: Row, images: ImageDecoder) -> Message:
    png = columns["image"]
    return Message(
        role=columns["role"],
        text=_decoded(columns["text"]),
        image=None if png is None else images(png),
    )


def _int32(values: Iterable[int]) -> NDArray[np.int32]:
    return np.array(tuple(values), dtype=np.int32)


def _float32(logprobs: Sequence[float]) -> NDArray[np.float32]:
    """The same numbers at half the width; a number that would change is refused."""
    exact = np.array(logprobs, dtype=np.float64)
    narrow = exact.astype(np.float32)
    changed = np.flatnonzero(~((narrow == exact) | np.isnan(exact)))
    if changed.size:
        raise ValueError(f"log-probs are float32 values: got {exact[changed[0]]!r}")
    return narrow


def _encodable(text: str) -> str:
    """Text that UTF-8 can hold: half a surrogate pair, which a model's JSON escape can
    name, is written as U+FFFE and four hex digits, and so is U+FFFE itself."""
    return _UNENCODABLE.sub(lambda match: f"\ufffe{ord(match[0]):04x}", text)


def _decoded(text: str) -> str:
    if "\ufffe" not in text:
        return text
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
