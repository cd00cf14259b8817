"""Small trajectories, right or wrong in one place."""

from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq

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


def make_step(**changes: Any) -> Step:
    """An answer of three tokens, `{`, ` go`, `}`, of which the first is a thought."""
    step = Step(
        prompt=Prompt((Message("user", "look"),), token_ids=(1, 2)),
        completion=Completion(
            (7, 8, 9), (-0.5, -0.25, 0.0), (0, 1, 4), "{ go}", FinishReason.STOP, 1.0
        ),
        action=ParsedAction("go", True, None, Span(0, 1), Span(1, 3)),
        reward=0.0,
        terminated=False,
        truncated=False,
        value=None,
        policy_version=0,
        state_key="start",
        duration_s=0.0,
    )
    return replace(step, **changes)


def make_trajectory(*rewards: float, **changes: Any) -> Trajectory:
    """An episode with these rewards; the last step is terminal."""
    steps = tuple(
        make_step(reward=reward, terminated=index == len(rewards) - 1)
        for index, reward in enumerate(rewards)
    )
    trajectory = Trajectory("Environment", 0, "task", 0, steps, None, False, metrics=())
    return replace(trajectory, **changes)


def with_first_step(**changes: Any) -> Trajectory:
    """Two steps, of which the first is changed."""
    trajectory = make_trajectory(0.0, 1.0)
    first, second = trajectory.steps
    return replace(trajectory, steps=(replace(first, **changes), second))


INVALID = ParsedAction("", False, ParseFailure.NO_ACTION, Span(0, 3), Span(3, 3))


class CountedGroups:
    """Counts the row groups that are read from disk."""

    def __init__(self, monkeypatch: Any) -> None:
        self.read: list[int] = []
        read_row_group = pq.ParquetFile.read_row_group

        def counted(file: Any, group: int, *args: Any, **kwargs: Any) -> Any:
            self.read.append(group)
            return read_row_group(file, group, *args, **kwargs)

        monkeypatch.setattr(pq.ParquetFile, "read_row_group", counted)
