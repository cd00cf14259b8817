"""Is a data set what it says it is? Every shard, every trajectory, every fault by its place."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, get_args

from forethought.errors import ConfigError, StorageError
from forethought.rollouts.store import find_shards, stream_shard
from forethought.targets.reward_map import RewardMap, read_reward_map, require_in_range
from forethought.types import Completion, ParsedAction, Role, Step, Trajectory

_ROUNDING = 1e-6
"""By how much a log-probability may exceed 0."""


class Fault(NamedTuple):
    """One thing that is wrong."""

    shard: str
    trajectory: int | None
    """Its number in the shard; None where the shard itself cannot be read (any further)."""
    message: str

    @property
    def line(self) -> str:
        """For persons: where, and what."""
        if self.trajectory is None:
            return self.message  # Of the store, which names the file.
        return f"{self.shard}: trajectory {self.trajectory}: {self.message}"


@dataclass(frozen=True)
class Validation:
    """What was looked at, and what was found."""

    shards: int
    trajectories: int
    steps: int
    faults: tuple[Fault, ...]

    def to_json(self) -> str:
        """For programs."""
        content = {
            "shards": self.shards,
            "trajectories": self.trajectories,
            "steps": self.steps,
            "faults": [fault._asdict() for fault in self.faults],
        }
        return json.dumps(content, indent=2) + "\n"


def validate(source: Path, *, gamma: float) -> Validation:
    """Checks seals and schema versions, and that every record is possible.

    A shard that cannot be read is one fault, and the others are looked at nevertheless; a
    trajectory counts for its first fault alone.

    Args:
        source: a shard, or a folder of shards.
        gamma: γ in [0, 1], per environment step, at which returns must lie in the reward map
            that the folder declares.

    Raises:
        StorageError: there is no such data set.
        ConfigError, StorageError: the declared reward map is none.
    """
    paths = find_shards(source)
    reward_map = read_reward_map(paths[0].parent)
    faults: list[Fault] = []
    trajectories = steps = 0
    for path in paths:
        try:
            for number, trajectory in enumerate(stream_shard(path)):
                trajectories, steps = trajectories + 1, steps + len(trajectory.steps)
                problem = first_problem(trajectory, reward_map, gamma=gamma)
                if problem is not None:
                    faults.append(Fault(str(path), number, problem))
        except StorageError as error:
            faults.append(Fault(str(path), None, str(error)))
    return Validation(len(paths), trajectories, steps, tuple(faults))


def first_problem(
    trajectory: Trajectory, reward_map: RewardMap | None, *, gamma: float
) -> str | None:
    """What is wrong with a trajectory, or None.

    Args:
        reward_map: what its returns must lie in; None: any.
        gamma: γ in [0, 1], per environment step.
    """
    for problem in _problems(trajectory):
        return problem
    if reward_map is None:
        return None
    try:
        require_in_range(trajectory, reward_map, gamma=gamma, name="reward map")
    except ConfigError as error:
        return str(error)
    return None


def _problems(trajectory: Trajectory) -> Iterator[str]:
    if not trajectory.environment_id:
        yield "environment_id is empty — expected the world's name"
    if trajectory.seed < 0 or trajectory.first_step < 0:
        yield f"seed {trajectory.seed}, first_step {trajectory.first_step} — expected 0 or more"
    if trajectory.failure is None and not trajectory.steps:
        yield "it has no steps — expected one at least, or an environment's failure"
    if trajectory.failure is not None and trajectory.steps:
        yield f"its environment failed ({trajectory.failure}), but it has steps — expected none"
    for index, step in enumerate(trajectory.steps, start=trajectory.first_step):
        for problem in _step_problems(step):
            yield f"step {index}: {problem}"
    yield from _end_problems(trajectory.steps, trajectory.first_step)
    has_ended = bool(trajectory.steps) and trajectory.steps[-1].terminated
    if has_ended and trajectory.bootstrap_value is not None:
        yield f"bootstrap_value is {trajectory.bootstrap_value} behind a terminal state"


def _end_problems(steps: Sequence[Step], first_step: int) -> Iterator[str]:
    for index, step in enumerate(steps[:-1], start=first_step):
        if step.terminated or step.truncated:
            yield f"step {index}: the episode ends here, but further steps follow"


def _step_problems(step: Step) -> Iterator[str]:
    if not step.prompt.messages:
        yield "its prompt has no message"
    for message in step.prompt.messages:
        if message.role not in get_args(Role):
            yield f"role is {message.role!r} — expected {', '.join(get_args(Role))}"
    if not math.isfinite(step.reward):
        yield f"reward is {step.reward} — expected a finite number"
    if step.value is not None and not math.isfinite(step.value):
        yield f"value is {step.value} — expected a finite number"
    yield from _completion_problems(step.completion)
    yield from _action_problems(step.action, len(step.completion.token_ids))


def _completion_problems(completion: Completion) -> Iterator[str]:
    if any(not logprob <= _ROUNDING for logprob in completion.logprobs):
        worst = next(p for p in completion.logprobs if not p <= _ROUNDING)
        yield f"log-prob is {worst} — expected 0 or less"
    offsets = (0, *completion.token_offsets, len(completion.text))
    if any(after < before for before, after in pairwise(offsets)):
        yield (
            f"token offsets do not rise from 0 to {len(completion.text)}, the length of the text"
        )


def _action_problems(action: ParsedAction, tokens: int) -> Iterator[str]:
    thought, act = action.thought_span, action.action_span
    if not 0 == thought.start <= thought.stop == act.start <= act.stop == tokens:
        yield (
            f"spans [{thought.start}, {thought.stop}) and [{act.start}, {act.stop}) do not tile "
            f"the {tokens} tokens of the answer"
        )
    if action.is_valid != (action.failure is None):
        yield f"action_is_valid is {action.is_valid}, but action_failure is {action.failure}"
    if action.was_randomised and action.is_valid:
        yield "a valid action was drawn at random"
