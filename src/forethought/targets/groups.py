"""Advantages without a critic, from recorded episodes: who is compared with whom."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forethought.targets.anchor_states import group_in_group_advantages
from forethought.targets.checks import FloatArray
from forethought.targets.episode_advantages import (
    group_centered_advantages,
    group_normalized_advantages,
    leave_one_out_advantages,
)
from forethought.types import Trajectory

GroupEstimator = Literal["rloo", "grpo", "dr_grpo", "gigpo"]
"""Those that compare the episodes that start from one seed."""

_BY_RETURN: dict[str, Callable[[FloatArray], NDArray[np.float64]]] = {
    "rloo": leave_one_out_advantages,
    "grpo": group_normalized_advantages,
    "dr_grpo": group_centered_advantages,
}


def group_advantages(
    trajectories: Sequence[Trajectory],
    *,
    estimator: GroupEstimator,
    gamma: float,
    step_weight: float,
) -> list[NDArray[np.float64]]:
    """Compares every episode with those that start from the same seed.

    An episode's return is its undiscounted sum of rewards; every step has the
    advantage of its episode, but for GiGPO's part per step. There is no critic, so
    an episode must be whole, from its first step to its end; where a limit ended it,
    what would have followed counts as nothing. An episode that the world's failure
    cost is nobody's to compare with: its group is the smaller by one. One that is
    left alone thereby has nobody, and advantages of 0.

    Args:
        trajectories: whole episodes, any groups, any order.
        estimator: see `leave_one_out_advantages` (rloo), `group_normalized_advantages`
            (grpo), `group_centered_advantages` (dr_grpo), `group_in_group_advantages` (gigpo).
        gamma: γ of GiGPO's returns-to-go; the others have none.
        step_weight: ω of GiGPO; the others have none.

    Returns:
        [T] for each trajectory, float64, in the same order; of length 0 for failed ones.

    Raises:
        ValueError: an episode that is not whole, or the only one of its seed.
    """
    groups: dict[tuple[str, int], list[int]] = defaultdict(list)
    for index, trajectory in enumerate(trajectories):
        groups[trajectory.environment_id, trajectory.seed].append(index)
    advantages = [np.zeros(0, dtype=np.float64) for _ in trajectories]
    for (environment_id, seed), members in groups.items():
        if len(members) < 2:
            raise ValueError(
                f"{environment_id}, seed {seed}: expected a group of at least 2 episodes, got 1"
            )
        played = [index for index in members if trajectories[index].failure is None]
        episodes = [trajectories[index] for index in played]
        for index, advantages_T in zip(
            played, _compare(episodes, estimator, gamma, step_weight), strict=True
        ):
            advantages[index] = advantages_T
    return advantages


def _compare(
    episodes: Sequence[Trajectory], estimator: GroupEstimator, gamma: float, step_weight: float
) -> list[NDArray[np.float64]]:
    """Advantages of the episodes of one group."""
    returns_N = np.array([episode_return(episode) for episode in episodes], dtype=np.float64)
    lengths = [len(episode.steps) for episode in episodes]
    if len(episodes) < 2:
        return [np.zeros(length, dtype=np.float64) for length in lengths]
    if estimator == "gigpo":
        return group_in_group_advantages(
            rewards=[
                np.array([step.reward for step in episode.steps], dtype=np.float64)
                for episode in episodes
            ],
            state_keys=[[step.state_key for step in episode.steps] for episode in episodes],
            gamma=gamma,
            step_weight=step_weight,
        )
    advantages_N = _BY_RETURN[estimator](returns_N)
    return [
        np.full(length, advantage) for length, advantage in zip(lengths, advantages_N, strict=True)
    ]


def episode_return(episode: Trajectory) -> float:
    """Undiscounted sum of the rewards of a whole episode.

    Raises:
        ValueError: a crashed episode, or one without its beginning or its end.
    """
    name = f"{episode.environment_id}, seed {episode.seed}"
    if episode.failure is not None:
        raise ValueError(f"{name}: a {episode.failure} is not experience: drop the episode")
    if any(step.terminated or step.truncated for step in episode.steps[:-1]):
        raise ValueError(f"{name}: expected steps of one episode, got steps after its end")
    if episode.first_step != 0 or not episode.is_finished:
        raise ValueError(
            f"{name}: expected a whole episode, because there is no critic for the rest; "
            f"got {len(episode.steps)} steps from step {episode.first_step}, "
            f"{'finished' if episode.is_finished else 'unfinished'}"
        )
    return episode.total_reward
