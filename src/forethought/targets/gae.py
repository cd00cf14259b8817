"""Generalized advantage estimation."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forethought.targets.checks import FloatArray, require_fraction, require_series
from forethought.targets.returns import value_after_last_step
from forethought.types import Trajectory


class Advantages(NamedTuple):
    advantages_T: NDArray[np.float64]  # how much better than the critic expected
    returns_T: NDArray[np.float64]  # what it should have said: advantage + value


def generalized_advantages(
    *,
    rewards_T: FloatArray,
    values_T: FloatArray,
    terminated: bool,
    bootstrap_value: float | None,
    gamma: float,
    gae_lambda: float,
) -> Advantages:
    """How much better each step turned out than the critic expected.

        δ_t = r_t + γ V_t+1 - V_t,   A_t = δ_t + γ λ A_t+1,   R_t = A_t + V_t

    with A_T = 0 and V_T = 0 if terminated, else the bootstrap value. Schulman et al.
    2016, Eq. 11-16: the mean, weighted by powers of λ, of the advantages that look
    1, 2, ... steps ahead. λ = 0 trusts the critic after one step, λ = 1 never.

    Args:
        rewards_T: of consecutive steps of one episode, in order.
        values_T: the critic's value of the state in which each step was taken.
        terminated: whether the world ended the episode at the last step.
        bootstrap_value: the critic's value of the state after the last step, where
            the run was truncated or cut; None exactly when terminated.
        gamma: γ in [0, 1], the discount per step.
        gae_lambda: λ in [0, 1], the discount per step of what the critic corrects.

    Returns:
        Advantages and returns, [T] each, in units of reward, float64.

    Raises:
        ValueError: a wrong shape or dtype, a number that is not finite, γ or λ outside
            [0, 1], or a bootstrap value that does not go with `terminated`.
    """
    require_series(rewards_T=rewards_T, values_T=values_T)
    require_fraction(gamma=gamma, gae_lambda=gae_lambda)
    next_value = value_after_last_step(terminated=terminated, bootstrap_value=bootstrap_value)
    advantages_T = np.empty(rewards_T.size, dtype=np.float64)
    advantage = 0.0
    for t in reversed(range(rewards_T.size)):
        value = float(values_T[t])
        surprise = float(rewards_T[t]) + gamma * next_value - value
        advantage = surprise + gamma * gae_lambda * advantage
        advantages_T[t] = advantage
        next_value = value
    return Advantages(advantages_T, returns_T=advantages_T + values_T)


def trajectory_advantages(trajectory: Trajectory, *, gamma: float, gae_lambda: float) -> Advantages:
    """`generalized_advantages` of recorded steps; their end decides about the bootstrap.

    A step that both terminated and hit a limit has terminated.

    Raises:
        ValueError: no steps, a crashed episode, steps after an end, a step without
            the critic's value, or what `generalized_advantages` refuses.
    """
    name = f"{trajectory.environment_id}, seed {trajectory.seed}"
    if trajectory.failure is not None:
        raise ValueError(f"{name}: a {trajectory.failure} is not experience: drop the episode")
    if not trajectory.steps:
        raise ValueError(f"{name}: expected at least one step, got none")
    if any(step.terminated or step.truncated for step in trajectory.steps[:-1]):
        raise ValueError(f"{name}: expected steps of one episode, got steps after its end")
    values = [step.value for step in trajectory.steps if step.value is not None]
    if len(values) != len(trajectory.steps):
        raise ValueError(
            f"{name}: expected a critic's value at every step, "
            f"got {len(values)} for {len(trajectory.steps)} steps"
        )
    return generalized_advantages(
        rewards_T=np.array([step.reward for step in trajectory.steps], dtype=np.float64),
        values_T=np.array(values, dtype=np.float64),
        terminated=trajectory.steps[-1].terminated,
        bootstrap_value=trajectory.bootstrap_value,
        gamma=gamma,
        gae_lambda=gae_lambda,
    )
