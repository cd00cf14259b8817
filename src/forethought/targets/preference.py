"""Which of two ways to go on went better: a score for every step of an episode."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forethought.targets.checks import FloatArray, require_fraction, require_series
from forethought.targets.returns import discounted_returns
from forethought.types import Step, Trajectory

PairReward = Literal["progress_delta", "progress", "reward"]
"""What is discounted: progress gained by each step, progress reached, or the reward."""

PROGRESS_SCALE = 50.0
"""What reaching the whole goal is worth, in invalid actions (Eq. 10)."""


def preference_scores(
    *,
    progress_T: FloatArray,
    is_invalid_T: NDArray[np.bool_],
    gamma: float,
    counts: Literal["progress_delta", "progress"] = "progress_delta",
    progress_before: float = 0.0,
) -> NDArray[np.float64]:
    """How well an episode went from each step on.

        P_t = 50 x_t - 1{action t invalid},   S_t = P_t + γ S_t+1,   S_T = 0

    InteractiveCOT, Eq. 10, discounted backwards as its text says. x is the success rate of
    the step, of which the paper does not say whether it is what the step gained or what is
    reached by then:

    - gain: x_t = progress_t - progress_t-1. Undiscounted, S_0 of a whole episode is 50 times
      the final progress less the invalid actions.
    - level: x_t = progress_t. An episode that ends with the whole goal gets 50 once, one that
      lingers half-way gets 25 a step: with γ = 0.9 it is preferred to winning.

    Args:
        progress_T: share of the goal that is met after each step, 0 to 1.
        is_invalid_T: whether the step's response held no action of this environment and state.
        gamma: γ in [0, 1], per step. Paper: not given; 0.9 as in RL4VLM.
        counts: what x is.
        progress_before: the progress before the first step, where that is in the middle of an
            episode.

    Returns:
        [T], in units of one invalid action, float64.

    Raises:
        ValueError: a wrong shape or dtype, progress outside [0, 1], γ outside [0, 1].
    """
    require_series(progress_T=progress_T)
    require_fraction(gamma=gamma)
    if is_invalid_T.dtype != np.bool_ or is_invalid_T.shape != progress_T.shape:
        raise ValueError(
            f"is_invalid_T: expected bool {list(progress_T.shape)}, "
            f"got {is_invalid_T.dtype} {list(is_invalid_T.shape)}"
        )
    if progress_T.min() < 0 or progress_T.max() > 1:
        raise ValueError(f"progress_T: expected 0 to 1, got {progress_T}")
    counted_T = (
        np.diff(progress_T, prepend=progress_before) if counts == "progress_delta" else progress_T
    )
    return discounted_returns(
        rewards_T=PROGRESS_SCALE * counted_T - is_invalid_T.astype(np.float64),
        terminated=True,  # nothing is known behind a limit, and nothing is assumed
        bootstrap_value=None,
        gamma=gamma,
    )


def trajectory_scores(
    trajectory: Trajectory, *, pair_reward: PairReward, gamma: float, progress_before: float = 0.0
) -> NDArray[np.float64]:
    """`preference_scores` of recorded steps, or their discounted rewards.

    Where the environment does not measure progress, the whole goal is met by the last step of a
    success, and nothing before.

    Args:
        progress_before: of a trajectory that begins in the middle of an episode.

    Raises:
        ValueError: no steps, or an episode that has not ended: how it went is not known.
    """
    if not trajectory.is_finished:
        raise ValueError(
            f"{trajectory.environment_id}, seed {trajectory.seed}: expected an episode played to "
            f"its end, got {len(trajectory.steps)} steps that do not reach it"
        )
    return _scores(trajectory.steps, trajectory.success, pair_reward, gamma, progress_before)


def lookahead_score(
    trajectory: Trajectory,
    *,
    at: int,
    horizon: int,
    pair_reward: PairReward,
    gamma: float,
    progress_before: float = 0.0,
) -> float:
    """The score of one step, as far as `horizon` steps tell, its own included.

    Args:
        at: index of the step in the trajectory.
        horizon: 1 or more.
        progress_before: the progress before that step.

    Raises:
        ValueError: steps that are too few, in an episode that went on.
    """
    steps = trajectory.steps[at : at + horizon]
    sees_end = trajectory.is_finished and at + horizon >= len(trajectory.steps)
    if not steps or (len(steps) < horizon and not sees_end):
        raise ValueError(
            f"{trajectory.environment_id}, seed {trajectory.seed}: expected {horizon} steps from "
            f"step {at} on, or the end of the episode; got {len(steps)}"
        )
    is_success = sees_end and trajectory.success
    return float(_scores(steps, is_success, pair_reward, gamma, progress_before)[0])


def _scores(
    steps: Sequence[Step],
    is_success: bool,
    pair_reward: PairReward,
    gamma: float,
    progress_before: float,
) -> NDArray[np.float64]:
    if pair_reward == "reward":
        return discounted_returns(
            rewards_T=np.array([step.reward for step in steps], dtype=np.float64),
            terminated=True,
            bootstrap_value=None,
            gamma=gamma,
        )
    known = [0.0 if step.progress is None else step.progress for step in steps]
    if steps[-1].progress is None:
        known[-1] = float(is_success)
    return preference_scores(
        progress_T=np.array(known, dtype=np.float64),
        is_invalid_T=np.array([not step.action.is_valid for step in steps]),
        gamma=gamma,
        counts=pair_reward,
        progress_before=progress_before,
    )
