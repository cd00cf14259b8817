"""Returns of episodes: discounted, as generalized advantages, and ranked as return bins."""

from collections import defaultdict
from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forethought.targets.checks import FloatArray, require_fraction, require_series
from forethought.types import Trajectory


def discounted_returns(
    *,
    rewards_T: FloatArray,
    terminated: bool,
    bootstrap_value: float | None,
    gamma: float,
) -> NDArray[np.float64]:
    """What is still to come, counted from each step on.

        G_t = r_t + γ G_t+1,   G_T = 0 if terminated, else the bootstrap value

    Sutton and Barto 2018, Eq. 3.9, and Eq. 7.1 for the bootstrapped end. Without a
    critic, a truncated run needs `bootstrap_value=0.0`, said aloud: it treats the
    future behind the limit as worthless.

    Args:
        rewards_T: of consecutive steps of one episode, in order.
        terminated: whether the environment ended the episode at the last step.
        bootstrap_value: the value of the state after the last step; None exactly
            when terminated.
        gamma: γ in [0, 1], per step.

    Returns:
        [T], in units of reward, float64.

    Raises:
        ValueError: a wrong shape or dtype, a number that is not finite, γ outside
            [0, 1], or a bootstrap value that does not go with `terminated`.
    """
    require_series(rewards_T=rewards_T)
    require_fraction(gamma=gamma)
    following = value_after_last_step(terminated=terminated, bootstrap_value=bootstrap_value)
    returns_T = np.empty(rewards_T.size, dtype=np.float64)
    for t in reversed(range(rewards_T.size)):
        following = float(rewards_T[t]) + gamma * following
        returns_T[t] = following
    return returns_T


def value_after_last_step(*, terminated: bool, bootstrap_value: float | None) -> float:
    """The discounted return still to come when the run of steps is over.

    A run stops in one of three ways. The environment *terminated* it: nothing follows,
    the value is zero. A limit *truncated* it, or the *collection was cut* in the
    middle of an episode: more would have followed, and the critic says how much.
    The first never merges with the other two.

    Args:
        terminated: whether the environment reached an end of its own.
        bootstrap_value: the critic's value of the state after the last step;
            None exactly when terminated.

    Raises:
        ValueError: a bootstrap value after termination, none without it, or one
            that is not finite.
    """
    if terminated:
        if bootstrap_value is not None:
            raise ValueError(
                f"bootstrap_value: expected None after termination, got {bootstrap_value}"
            )
        return 0.0
    if bootstrap_value is None:
        raise ValueError(
            "bootstrap_value: expected the value of the state after the last step, because "
            "the run was truncated or cut and not terminated; got None"
        )
    if not isfinite(bootstrap_value):
        raise ValueError(f"bootstrap_value: expected a finite number, got {bootstrap_value}")
    return bootstrap_value


# Generalized advantage estimation.


class Advantages(NamedTuple):
    """Advantages and targets of each step of a trajectory: advantage, and the critic's target."""

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
        terminated: whether the environment ended the episode at the last step.
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


# Episodes told apart by what they brought: the best of them, and ranks to ask a model for.


_DIGITS = 9
"""Returns that differ by less are rounded differently, not different."""


def best_episodes(returns: Sequence[float], *, fraction: float) -> list[int]:
    """Which episodes have the highest returns: what filtered behavior cloning learns from.

    Args:
        returns: of each episode.
        fraction: of them that is kept, in (0, 1]; at least one. Of equal ones the earlier.

    Returns:
        Their numbers, rising.

    Raises:
        ValueError: no episode, or a fraction outside (0, 1].
    """
    if not returns:
        raise ValueError("expected episodes, got none")
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction: expected above 0, at most 1, got {fraction}")
    count = max(1, round(fraction * len(returns)))
    ranked = np.argsort(-np.round(np.asarray(returns), _DIGITS), kind="stable")
    return sorted(ranked[:count].tolist())


def return_bins(
    returns_to_go: Sequence[NDArray[np.float64]], *, levels: int
) -> list[tuple[int, ...]]:
    """How well each episode went on from each of its steps, among those that came so far.

        level = min(K, 1 + floor(K x)),   x = b / max b

    b is the share of the episodes with a step t whose return from t on is lower, K the number
    of levels. The best return has level K at every step, whatever the environment's rewards are: a
    policy that is asked for K all the time is never asked for what the data do not hold.
    Decision Transformer (Chen et al. 2021) tells the return itself, and subtracts each reward.

    Args:
        returns_to_go: of each episode, [T], in any unit.
        levels: K, 2 or more.

    Returns:
        Of each episode and step, 1 to K; K where all returns are equal.

    Raises:
        ValueError: fewer than two levels.
    """
    if levels < 2:
        raise ValueError(f"levels: expected 2 or more, got {levels}")
    rounded = [np.round(returns_T, _DIGITS).tolist() for returns_T in returns_to_go]
    by_step: defaultdict[int, list[float]] = defaultdict(list)
    for returns in rounded:
        for step, value in enumerate(returns):
            by_step[step].append(value)
    ranked = {step: np.sort(values) for step, values in by_step.items()}

    def level(step: int, value: float) -> int:
        others = ranked[step]
        lower, lower_than_best = np.searchsorted(others, [value, others[-1]], side="left").tolist()
        # Whole numbers: a quotient could fall short of the level that it is.
        return min(levels, 1 + levels * lower // lower_than_best) if lower_than_best else levels

    return [tuple(level(step, one) for step, one in enumerate(returns)) for returns in rounded]
