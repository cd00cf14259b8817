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
    was_randomized: bool = False
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
    return Trajectory("Environment", seed, task_type, first_step, tuple(steps), None, success, ())


def _step(did: Did) -> Step:
    text = did.action if did.answer is None else did.answer
    ids = tuple(range(len(did.logprobs)))
    completion = Completion(ids, did.logprobs, ids, text, FinishReason.STOP, 1.0)
    return Step(
        prompt=Prompt((), (1,)),
        completion=completion,
        action=ParsedAction(
            did.action, did.is_valid, None, Span(0, 0), Span(0, 0), did.was_randomized
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


# The three steps that test_gae.py works out by hand.
CUT = replace(
    trajectory(
        Did("+", reward=1.0, value=2.0),
        Did("+", reward=0.0, value=4.0),
        Did("+", reward=2.0, value=1.0),
        seed=7,
        ends="",
    ),
    bootstrap_value=6.0,
)


def ending(*, terminated: bool, truncated: bool, bootstrap_value: float | None) -> Trajectory:
    first, second, last = CUT.steps
    last = replace(last, terminated=terminated, truncated=truncated)
    return replace(CUT, steps=(first, second, last), bootstrap_value=bootstrap_value)
