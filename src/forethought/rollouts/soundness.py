"""What a stored trajectory must be, whoever reads it: training, `collect`, `data validate`.

A shard's seal says that it is what was written; this says that what was written is possible.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import get_args

from forethought.environments.check_values import ends_problem, reward_problem, text_problem
from forethought.types import Completion, Earned, ParsedAction, Role, Step, Trajectory

_ROUNDING = 1e-6
"""By how much a log-probability may exceed 0."""

MAY_BE_NULL = {
    *("bootstrap_value", "environment_failure", "action_failure", "value", "progress"),
    *("allowed_ids", "perceived", "inferred", "concluded_actions", "strict_format"),
}
"""Columns of a step that it need not have."""


def problems_of(trajectory: Trajectory) -> Iterator[str]:
    """All that is wrong with a trajectory, each with its step."""
    if not trajectory.environment_id:
        yield "environment_id is empty — expected the environment's name"
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
    for name, value in trajectory.metrics:
        if not math.isfinite(value):
            yield f"measure {name} is {value} — expected a finite number"
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
        if (problem := text_problem("its prompt", message.text)) is not None:
            yield problem
    for problem in (reward_problem(step.reward), ends_problem(step.terminated, step.truncated)):
        if problem is not None:
            yield problem
    if step.value is not None and not math.isfinite(step.value):
        yield f"value is {step.value} — expected a finite number"
    if (problem := text_problem("its response", step.completion.text)) is not None:
        yield problem
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
    if action.was_randomized and action.is_valid:
        yield "a valid action was drawn at random"


def earned_problems(earned: Earned) -> Iterator[str]:
    """The same of what a trajectory earned alone."""
    for index, reward in enumerate(earned.rewards, start=earned.first_step):
        if (problem := reward_problem(reward)) is not None:
            yield f"step {index}: {problem}"


def require_filled(row: Mapping[str, object]) -> None:
    """
    Raises:
        ValueError: a column is null that every step has.
    """
    for name, value in row.items():
        if value is None and name not in MAY_BE_NULL:
            raise ValueError(f"{name} is null")
