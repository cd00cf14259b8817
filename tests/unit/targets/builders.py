"""Recorded steps and trajectories, as few words as a test needs."""

from dataclasses import replace
from typing import NamedTuple

from forethought.types import (
    Completion,
    FinishReason,
    ParsedAction,
    Prompt,
    Span,
    Step,
    Trajectory,
)


class Did(NamedTuple):
    """What one step was."""

    action: str
    state: str = "s"
    reward: float = 0.0
    progress: float | None = None
    is_valid: bool = True
    was_randomised: bool = False
    answer: str | None = None
    """The text, where it is more than the action."""
    logprobs: tuple[float, ...] = ()
    """Of as many tokens."""
    value: float | None = None


def trajectory(
    *did: Did,
    seed: int = 0,
    first_step: int = 0,
    success: bool = False,
    task_type: str = "Pick",
    ends: str = "terminated",
) -> Trajectory:
    """An episode that ended, or (`ends=""`) one that did not."""
    steps = [_step(one) for one in did]
    steps[-1] = replace(steps[-1], terminated=ends == "terminated", truncated=ends == "truncated")
    return Trajectory("World", seed, task_type, first_step, tuple(steps), None, success, ())


def _step(did: Did) -> Step:
    text = did.action if did.answer is None else did.answer
    ids = tuple(range(len(did.logprobs)))
    completion = Completion(ids, did.logprobs, ids, text, FinishReason.STOP, 1.0)
    return Step(
        prompt=Prompt((), (1,)),
        completion=completion,
        action=ParsedAction(
            did.action, did.is_valid, None, Span(0, 0), Span(0, 0), did.was_randomised
        ),
        reward=did.reward,
        terminated=False,
        truncated=False,
        value=did.value,
        policy_version=0,
        state_key=did.state,
        duration_s=0.0,
        progress=did.progress,
    )
