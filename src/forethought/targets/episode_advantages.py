"""Advantages without a critic: episodes against their group, or against the batch; GiGPO also
compares steps that were taken in one state."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forethought.targets.checks import FloatArray, require_fraction, require_group, require_series
from forethought.targets.returns import discounted_returns
from forethought.types import Trajectory

EPSILON = 1e-8
"""Added to the standard deviation, in units of return: differences far below it are
noise of the arithmetic and stay small instead of being blown up to 1."""


def normalize_advantages(
    advantages_N: FloatArray, *, weights_N: FloatArray | None = None
) -> NDArray[np.float64]:
    """Mean 0 and standard deviation 1, over the whole batch and never per micro-batch.

        (A - mean) / (std + ε),   mean = Σ w A / Σ w,   std² = Σ w (A - mean)² / Σ w

    Where all advantages that weigh anything are equal there is nothing to prefer:
    the result is exactly 0 everywhere. So it is for a batch of one.

    Args:
        advantages_N: of every step of the batch, any trajectories, any order.
        weights_N: how much each counts, at least 0, such as its number of tokens;
            None: all the same.

    Returns:
        [N], dimensionless, float64.

    Raises:
        ValueError: a wrong shape or dtype, a number that is not finite, a negative
            weight, or weights that are all 0.
    """
    if weights_N is None:
        weights_N = np.ones(advantages_N.shape, dtype=np.float64)
    require_series(advantages_N=advantages_N, weights_N=weights_N)
    if weights_N.min() < 0 or weights_N.max() == 0:
        raise ValueError(f"weights_N: expected at least 0 and not all 0, got {weights_N}")
    if np.ptp(advantages_N[weights_N > 0]) == 0:
        return np.zeros(advantages_N.size, dtype=np.float64)
    mean = np.average(advantages_N, weights=weights_N)
    variance = np.average(np.square(advantages_N - mean), weights=weights_N)
    return np.asarray((advantages_N - mean) / (np.sqrt(variance) + EPSILON), dtype=np.float64)


def batch_normalized_advantages(
    *, returns_N: FloatArray, steps_N: FloatArray
) -> NDArray[np.float64]:
    """How many standard deviations each episode lies above the mean of the batch.

        A_i = (R_i - mean) / (std + ε),   mean = Σ T_i R_i / Σ T_i,
                                          std² = Σ T_i (R_i - mean)² / Σ T_i

    REINFORCE++: Hu et al. 2025 (arXiv 2501.03262), the variant without group baseline,
    on outcomes and without its KL penalty. One mean and one deviation for all starts:
    it needs no groups, but an easy start is praised for being easy. T_i, the number of steps,
    makes the advantage of the batch's *steps*, which the loss averages, 0 in the mean.

    Args:
        returns_N: R, one per episode of the batch, over all processes, any order.
        steps_N: T, steps of each episode, as floats, above 0.

    Returns:
        [N], dimensionless, float64; exactly 0 where all are equal.

    Raises:
        ValueError: a wrong shape or dtype, a number that is not finite, or lengths
            that are negative or all 0.
    """
    return normalize_advantages(returns_N, weights_N=steps_N)


def leave_one_out_advantages(returns_N: FloatArray) -> NDArray[np.float64]:
    """How much better each episode went than the others from the same start.

        A_i = R_i - 1 / (n - 1) Σ_{j ≠ i} R_j

    RLOO: Kool et al. 2019; Ahmadian et al. 2024 (arXiv 2402.14740). The baseline does not
    depend on the episode that it judges, so the gradient is unbiased. Equal to n / (n - 1)
    times the distance from the mean of all: n - 1 others, not n.

    Args:
        returns_N: R, one per episode of *one* group, any order.

    Returns:
        [N], in units of return, float64; sums to 0; exactly 0 where all are equal.

    Raises:
        ValueError: a group of one, which has no others; a wrong shape or dtype, or a
            number that is not finite.
    """
    require_group(returns_N=returns_N)
    if np.ptp(returns_N) == 0:
        return np.zeros(returns_N.size, dtype=np.float64)
    returns_N = returns_N.astype(np.float64)
    others_N = (returns_N.sum() - returns_N) / (returns_N.size - 1)
    return np.asarray(returns_N - others_N, dtype=np.float64)


def group_normalized_advantages(returns_N: FloatArray) -> NDArray[np.float64]:
    """How many standard deviations each episode lies above its group's mean.

        A_i = (R_i - mean(R)) / (std(R) + ε)

    GRPO: Shao et al. 2024 (DeepSeekMath, arXiv 2402.03300), which leaves open which
    standard deviation is meant: here the population's (divided by n), ε as in
    `normalize_advantages`; the sample's would shrink a group of 2 by √2 and a group
    of 8 by 1.07. Groups that nearly all win, or nearly all lose, weigh as much as
    those in between: see `group_centered_advantages`.

    Args:
        returns_N: R, one per episode of *one* group, any order.

    Returns:
        [N], dimensionless, float64; sums to 0; exactly 0 where all are equal.

    Raises:
        ValueError: a group of one, which has no spread; a wrong shape or dtype, or a
            number that is not finite.
    """
    require_group(returns_N=returns_N)
    return normalize_advantages(returns_N)


def group_centered_advantages(returns_N: FloatArray) -> NDArray[np.float64]:
    """How far each episode lies above its group's mean.

        A_i = R_i - mean(R)

    Dr. GRPO: Liu et al. 2025 (arXiv 2503.20783). Without the division a start that is nearly
    always won, or nearly always lost, teaches less than one in between. The mean
    includes the episode itself: (n - 1) / n times `leave_one_out_advantages`.

    Args:
        returns_N: R, one per episode of *one* group, any order.

    Returns:
        [N], in units of return, float64; sums to 0; exactly 0 where all are equal.

    Raises:
        ValueError: a group of one, whose only advantage would always be 0; a wrong
            shape or dtype, or a number that is not finite.
    """
    require_group(returns_N=returns_N)
    if np.ptp(returns_N) == 0:
        return np.zeros(returns_N.size, dtype=np.float64)
    returns_N = returns_N.astype(np.float64)
    return np.asarray(returns_N - returns_N.mean(), dtype=np.float64)


# GiGPO: episodes against their group, and steps against those taken in the same state.


def group_in_group_advantages(
    *,
    rewards: Sequence[FloatArray],
    state_keys: Sequence[Sequence[str]],
    gamma: float,
    step_weight: float,
) -> list[NDArray[np.float64]]:
    """How much better each episode went than its group, plus how much better each step.

        A_it = A^E_i + ω A^S_it
        A^E_i  = (R_i - mean_j R_j) / (std_j R_j + ε),    R_i = Σ_t r_it
        A^S_it = (G_it - mean G) / (std G + ε)  over the steps of the group that were
                 taken in the same state,                 G_it = Σ_{k ≥ t} γ^{k-t} r_ik

    GiGPO: Feng et al. 2025 (arXiv 2505.10978), F_norm = std (the population's).
    A state that one step alone met gives A^S = 0: nothing to compare it with. An
    episode that comes back to a state counts there once for each visit. What follows
    behind a limit is unknown without a critic, and counts as nothing.

    Args:
        rewards: r, [T_i] for each episode of *one* group, from its first step to its end.
        state_keys: of the state in which each step was taken, [T_i] for each episode.
        gamma: γ in [0, 1], per step.
        step_weight: ω, at least 0; 0 is GRPO.

    Returns:
        [T_i] for each episode, dimensionless, float64.

    Raises:
        ValueError: a group of one, a key too many or too few, a wrong shape or dtype, a
            number that is not finite, γ outside [0, 1], or ω below 0.
    """
    require_fraction(gamma=gamma)
    if not 0 <= step_weight < float("inf"):
        raise ValueError(f"step_weight: expected 0 or more, got {step_weight}")
    for rewards_T in rewards:
        require_series(rewards_T=rewards_T)
    lengths = [rewards_T.size for rewards_T in rewards]
    if [len(keys) for keys in state_keys] != lengths:
        raise ValueError(
            f"state_keys: expected one per reward, {lengths}, got {[len(k) for k in state_keys]}"
        )
    by_episode = group_normalized_advantages(
        np.array([rewards_T.sum(dtype=np.float64) for rewards_T in rewards], dtype=np.float64)
    )
    returns_S = np.concatenate([returns_to_go(rewards_T, gamma=gamma) for rewards_T in rewards])
    visits: dict[str, list[int]] = defaultdict(list)
    for index, key in enumerate(chain.from_iterable(state_keys)):
        visits[key].append(index)
    by_step_S = np.zeros(returns_S.size, dtype=np.float64)
    for here in visits.values():
        by_step_S[here] = normalize_advantages(returns_S[here])
    advantages_S = np.repeat(by_episode, lengths) + step_weight * by_step_S
    return np.split(advantages_S, np.cumsum(lengths)[:-1])


def returns_to_go(rewards_T: FloatArray, *, gamma: float) -> NDArray[np.float64]:
    """`discounted_returns` of a whole episode, with nothing behind its end, whatever ended it."""
    return discounted_returns(
        rewards_T=rewards_T, terminated=False, bootstrap_value=0.0, gamma=gamma
    )


# Advantages without a critic, from recorded episodes: who is compared with whom.


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
    what would have followed counts as nothing. An episode that the environment's failure
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
