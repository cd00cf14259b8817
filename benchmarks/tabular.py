"""Q-SFT without function approximation: the exact fixed point on finite MDPs.

Everything that Q-SFT's theory claims can be computed where states and actions can be listed;
`benchmarks/q_sft_tabular.py` prints what holds.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

ResidualMass = Literal["spread", "token"]
"""Where the weight goes that an action is not worth."""
PolicyExtraction = Literal["probability", "ratio"]
"""What exp(β …) is taken of."""
Table = NDArray[np.float64]
"""[S, A]"""

_CLOSE = 1e-12
"""Change per round at which an iteration has converged."""
_ROUNDS = 3_000
_NEWTON_ROUNDS = 30_000


@dataclass(frozen=True, eq=False)
class TabularMDP:
    """A finite MDP, and the policy that made the data."""

    rewards_SA: Table
    """Mean rewards, such that no policy's discounted return leaves [0, 1]."""
    transitions_SAS: NDArray[np.float64]
    behavior_SA: Table
    """π_β, above 0 everywhere."""
    gamma: float


def random_mdp(
    rng: np.random.Generator, *, states: int, actions: int, gamma: float = 0.95
) -> TabularMDP:
    """Uniform rewards; three successors a pair; behavior Dirichlet(1) with a twentieth of the
    uniform one, so that every action is in the data.

    Rewards are scaled by 1 - γ, so that discounted returns lie in [0, 1].
    """
    rewards_SA = (1 - gamma) * rng.random((states, actions))
    transitions_SAS = np.zeros((states, actions, states))
    for s, a in np.ndindex(states, actions):
        successors = rng.choice(states, size=min(3, states), replace=False)
        transitions_SAS[s, a, successors] = rng.dirichlet(np.ones(len(successors)))
    behavior_SA = 0.95 * rng.dirichlet(np.ones(actions), size=states) + 0.05 / actions
    return TabularMDP(rewards_SA, transitions_SAS, behavior_SA, gamma)


def optimal_values(mdp: TabularMDP) -> Table:
    """Q*, by value iteration."""
    values_SA = np.zeros_like(mdp.rewards_SA)
    for _ in range(_ROUNDS):
        new_SA = mdp.rewards_SA + mdp.gamma * mdp.transitions_SAS @ values_SA.max(1)
        if np.abs(new_SA - values_SA).max() < _CLOSE:
            return new_SA
        values_SA = new_SA
    raise ArithmeticError("value iteration does not converge")


def policy_value(mdp: TabularMDP, policy_SA: Table) -> float:
    """Mean over states of the policy's discounted return, from the linear Bellman equations."""
    rewards_S = (policy_SA * mdp.rewards_SA).sum(1)
    transitions_SS = np.einsum("sa,sat->st", policy_SA, mdp.transitions_SAS)
    identity_SS = np.eye(len(rewards_S))
    values_S = np.linalg.solve(identity_SS - mdp.gamma * transitions_SS, rewards_S)
    return float(values_S.mean())


def likelihood_fixed_point(mdp: TabularMDP, *, residual_mass: ResidualMass) -> Table:
    """p^ where Q-SFT's target and the optimum of its loss agree: [S, A].

        B = clip(r + γ E[max_a' p(a'|s') / π(a'|s')], 0, 1)
        dummy:  p(a|s) = π(a|s) B(s, a)
        spread: p(a|s) = π(a|s) B(s, a) + sum_{a' != a} π(a'|s) (1 - B(s, a')) / (|A| - 1)

    Hong et al. 2024, Eq. 5, with the clip. What `dummy` leaves over is on an action of its own,
    and iterating is value iteration. Spread, it can make a rare action look so good that nothing
    is left over, and then not: iterating swings, so it moves a tenth of the way, as the slow
    copy of the network does; where even that circles, Newton's method finds the point.

    Raises:
        ArithmeticError: it does not.
    """
    values_S = np.zeros(len(mdp.rewards_SA))
    part = 1.0 if residual_mass == "token" else 0.1
    for _ in range(_ROUNDS):
        likelihood_SA, _ = _backup(mdp, values_S, residual_mass)
        error_S = (likelihood_SA / mdp.behavior_SA).max(1) - values_S
        if np.abs(error_S).max() < _CLOSE:
            return likelihood_SA
        values_S = values_S + part * error_S
    return _newton(mdp, values_S)


def _backup(
    mdp: TabularMDP, values_S: NDArray[np.float64], residual_mass: ResidualMass
) -> tuple[Table, NDArray[np.bool_]]:
    """p^ of Eq. 5 where the next states are worth this, and where B is not clipped."""
    backup_SA = mdp.rewards_SA + mdp.gamma * mdp.transitions_SAS @ values_S
    targets_SA = backup_SA.clip(0.0, 1.0)
    likelihood_SA = mdp.behavior_SA * targets_SA
    if residual_mass == "spread":
        left_SA = mdp.behavior_SA * (1 - targets_SA)
        others = targets_SA.shape[1] - 1
        likelihood_SA = likelihood_SA + (left_SA.sum(1, keepdims=True) - left_SA) / others
    return likelihood_SA, (backup_SA > 0) & (backup_SA < 1)


def _newton(mdp: TabularMDP, values_S: NDArray[np.float64]) -> Table:
    """The fixed point of the spread variant, which is piecewise linear in the states' values."""
    behavior_SA = mdp.behavior_SA
    states = np.arange(len(values_S))
    rng = np.random.default_rng(0)
    for number in range(1, _NEWTON_ROUNDS + 1):
        likelihood_SA, is_free_SA = _backup(mdp, values_S, "spread")
        ratios_SA = likelihood_SA / behavior_SA
        best_S = ratios_SA.argmax(1)
        error_S = ratios_SA[states, best_S] - values_S
        if np.abs(error_S).max() < _CLOSE:
            return likelihood_SA
        slopes_SAS = mdp.gamma * mdp.transitions_SAS * is_free_SA[:, :, None]
        weighted_SAS = behavior_SA[:, :, None] * slopes_SAS
        rest_SAS = weighted_SAS.sum(1, keepdims=True) - weighted_SAS
        slopes_SAS = slopes_SAS - rest_SAS / behavior_SA[:, :, None] / (ratios_SA.shape[1] - 1)
        jacobian_SS = slopes_SAS[states, best_S] - np.eye(len(states))
        values_S = values_S - np.linalg.solve(jacobian_SS, error_S)
        # Steps can circle between pieces, too: begin elsewhere.
        if number % 30 == 0:
            values_S = rng.random(len(states)) * 1.5
    raise ArithmeticError("Q-SFT's fixed point is not reached")


def extracted_policy(
    mdp: TabularMDP, likelihood_SA: Table, *, beta: float, policy_extraction: PolicyExtraction
) -> Table:
    """The policy that acts: π^ ∝ π_β exp(β p) or π_β exp(β clip(p / π_β, 0, 1)).

    Hong et al. 2024, Sec. 4.2, for "probability"; β = infinity takes the best action.
    """
    worth_SA = likelihood_SA
    if policy_extraction == "ratio":
        worth_SA = (likelihood_SA / mdp.behavior_SA).clip(0.0, 1.0)
    if np.isinf(beta):
        return np.eye(worth_SA.shape[1])[worth_SA.argmax(1)]
    logits_SA = np.log(mdp.behavior_SA) + beta * worth_SA
    weights_SA = np.exp(logits_SA - logits_SA.max(1, keepdims=True))
    return weights_SA / weights_SA.sum(1, keepdims=True)
