"""GiGPO: episodes against their group, and steps against those taken in the same state."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from forethought.targets.checks import FloatArray, require_fraction, require_series
from forethought.targets.episode_advantages import group_normalized_advantages, normalize_advantages
from forethought.targets.returns import discounted_returns


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
