"""Discounted returns, and what follows the last step."""

from math import isfinite

import numpy as np
from numpy.typing import NDArray

from forethought.targets.checks import FloatArray, require_fraction, require_series


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
        terminated: whether the world ended the episode at the last step.
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

    A run stops in one of three ways. The world *terminated* it: nothing follows,
    the value is zero. A limit *truncated* it, or the *collection was cut* in the
    middle of an episode: more would have followed, and the critic says how much.
    The first never merges with the other two.

    Args:
        terminated: whether the world reached an end of its own.
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
