"""What Q-SFT's theory says, and what of it holds, at the exact fixed point of finite MDPs.

`benchmarks/q_sft_tabular.py` prints the same on more of them.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from benchmarks.tabular import (
    Table,
    TabularMDP,
    extracted_policy,
    likelihood_fixed_point,
    optimal_values,
    policy_value,
    random_mdp,
)

ROUNDING = 1e-9
SIZES = (3, 5, 20, 50)
PER_SIZE = 50
for_each_size = pytest.mark.parametrize("actions", SIZES)


class Solved(NamedTuple):
    mdp: TabularMDP
    best_SA: Table
    """Q*."""
    spread_SA: Table
    """p^"""
    dummy_SA: Table


@cache
def solved(actions: int) -> tuple[Solved, ...]:
    rng = np.random.default_rng([5, actions])
    mdps = [random_mdp(rng, states=6, actions=actions) for _ in range(PER_SIZE)]
    return tuple(
        Solved(
            mdp,
            optimal_values(mdp),
            likelihood_fixed_point(mdp, residual_mass="spread"),
            likelihood_fixed_point(mdp, residual_mass="token"),
        )
        for mdp in mdps
    )


@for_each_size
def test_never_below_behavior_times_value(actions: int) -> None:
    """Theorem 4.1, lower bound."""
    for mdp, best_SA, spread_SA, _ in solved(actions):
        assert (spread_SA >= best_SA * mdp.behavior_SA - ROUNDING).all()


@for_each_size
def test_on_a_dummy_it_is_behavior_times_value(actions: int) -> None:
    for mdp, best_SA, _, dummy_SA in solved(actions):
        np.testing.assert_allclose(dummy_SA, best_SA * mdp.behavior_SA, atol=1e-8)


@pytest.mark.parametrize("actions", [20, 50])
def test_spread_over_many_actions_it_is_not_above_the_value(actions: int) -> None:
    """Theorem 4.1, upper bound, on random MDPs."""
    for _, best_SA, spread_SA, _ in solved(actions):
        assert (spread_SA <= best_SA + ROUNDING).all()


def test_spread_over_three_it_often_is() -> None:
    above = [(spread_SA > best_SA + ROUNDING).any() for _, best_SA, spread_SA, _ in solved(3)]
    assert np.mean(above) > 0.3


@pytest.mark.parametrize("actions", [3, 20])
def test_the_upper_bound_does_not_follow(actions: int) -> None:
    """A state that is worth 1/2 whatever one does, and before it a state that leads there.

    Behavior rarely takes the last action. At the second state all of what is not worth it goes
    to a rare action: p/π there is well above 1, B before it is clipped to 1, and the common
    action there gets p = π = 0.96, though it is worth 1/2. The theorem's condition,
    B >= 1/(|A| - 1), holds in both states; its proof takes max p/π for at most Q*.
    """
    common = np.array([0.96, *[0.04 / (actions - 1)] * (actions - 1)])
    rewards_SA = np.stack([np.zeros(actions), np.full(actions, 0.5)])
    transitions_SAS = np.zeros((2, actions, 2))
    transitions_SAS[0, :, 1] = 1.0  # The second state ends: nothing follows it.
    mdp = TabularMDP(rewards_SA, transitions_SAS, np.stack([common, common]), gamma=1.0)
    assert optimal_values(mdp) == pytest.approx(0.5)
    found_SA = likelihood_fixed_point(mdp, residual_mass="spread")
    rare = 0.5 + (1 - common[-1]) * 0.5 / (actions - 1) / common[-1]
    assert found_SA[1, -1] / common[-1] == pytest.approx(rare)
    assert rare > 1
    assert found_SA[0] == pytest.approx(common)
    dummy_SA = likelihood_fixed_point(mdp, residual_mass="token")
    assert dummy_SA == pytest.approx(0.5 * mdp.behavior_SA)


@for_each_size
def test_the_exact_policy_is_never_worse_and_becomes_optimal(actions: int) -> None:
    for mdp, best_SA, _, dummy_SA in solved(actions):
        values = [
            policy_value(mdp, extracted_policy(mdp, dummy_SA, beta=beta, policy_extraction="ratio"))
            for beta in (0.0, 1.0, 8.0, 64.0, 512.0, np.inf)
        ]
        assert values[0] == pytest.approx(policy_value(mdp, mdp.behavior_SA))
        assert (np.diff(values) >= -ROUNDING).all()
        optimum = policy_value(mdp, np.eye(actions)[best_SA.argmax(1)])
        assert values[-1] == pytest.approx(optimum)


@for_each_size
def test_the_papers_policy_is_worse_than_behavior_in_many(actions: int) -> None:
    """π exp(p) favors what is common as much as what is good."""
    worse = [
        policy_value(
            mdp, extracted_policy(mdp, spread_SA, beta=1.0, policy_extraction="probability")
        )
        < policy_value(mdp, mdp.behavior_SA) - ROUNDING
        for mdp, _, spread_SA, _ in solved(actions)
    ]
    assert 0.2 < np.mean(worse) < 0.8
