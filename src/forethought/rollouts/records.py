"""Steps and trajectories as records, made from what a slot went through."""

from forethought.environments.contract import Transition
from forethought.environments.vector import Reply
from forethought.rollouts.slot import Asked, Slot
from forethought.types import EnvironmentFailure, Step, Trajectory, progress_in


def taken_step(asked: Asked, reply: Reply, what: Transition, policy_version: int) -> Step:
    """An answer that the world has executed."""
    return Step(
        prompt=asked.prompt,
        completion=asked.result.completion,
        action=asked.action,
        reward=what.reward,
        terminated=what.terminated,
        truncated=what.truncated,
        value=asked.result.value,
        policy_version=policy_version,
        state_key=asked.state_key,
        duration_s=reply.duration_s,
        progress=progress_in(reply.metrics),
        thought_facts=reply.thought_facts,
        strict_format=asked.strict_format,
    )


def played(slot: Slot, reply: Reply, environment_id: str, *, has_ended: bool) -> Trajectory:
    """The slot's steps of this collection, up to the reply."""
    return Trajectory(
        environment_id=environment_id,
        seed=slot.seed,
        task_type=reply.observation.task_type,
        first_step=len(slot.actions) - len(slot.steps),
        steps=tuple(slot.steps),
        bootstrap_value=None,
        success=reply.success if has_ended else False,
        metrics=reply.metrics if has_ended else (),
    )


def given_up(slot: Slot, environment_id: str, failure: EnvironmentFailure) -> Trajectory:
    """An episode that the world did not bring to an end: no steps, no reward of zero."""
    return Trajectory(
        environment_id=environment_id,
        seed=slot.seed,
        task_type="" if slot.observation is None else slot.observation.task_type,
        first_step=0,
        steps=(),
        bootstrap_value=None,
        success=False,
        metrics=(),
        failure=failure,
    )
