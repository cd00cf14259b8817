"""What holds of Q-SFT at its exact fixed point, on random finite MDPs.

    python -m benchmarks.q_sft_tabular
    python -m benchmarks.q_sft_tabular --mdps 200 --actions 3 5 20 100 --json

For each number of actions: Theorem 4.1's two bounds, and how much of the gap between the
behavior policy and the best one the extracted policy closes. No sampling, no network: what
fails here fails by construction.
"""

import argparse
import json
from dataclasses import asdict, dataclass, field

import numpy as np

from benchmarks.tabular import (
    PolicyExtraction,
    ResidualMass,
    extracted_policy,
    likelihood_fixed_point,
    optimal_values,
    policy_value,
    random_mdp,
)

BETAS = (1.0, 8.0, 32.0, 128.0, 1024.0, float("inf"))
WAYS: tuple[tuple[ResidualMass, PolicyExtraction], ...] = (
    ("spread", "probability"),
    ("spread", "ratio"),
    ("token", "probability"),
    ("token", "ratio"),
)
ROUNDING = 1e-9


@dataclass
class Extracted:
    """One way to act, at one β, over all MDPs of a size."""

    residual_mass: str
    policy_extraction: str
    beta: float
    gap_closed: float = 0.0
    """Mean share of the gap from behavior to optimum; negative: worse than behavior."""
    worse: float = 0.0
    """Share of MDPs where the policy is worse than the behavior."""


@dataclass
class Findings:
    """Of all MDPs with so many actions; shares of MDPs."""

    actions: int
    mdps: int
    lower_bound: dict[str, float] = field(default_factory=dict)
    """p^ >= Q* π_β everywhere."""
    upper_bound: dict[str, float] = field(default_factory=dict)
    """p^ <= Q* everywhere."""
    equality: dict[str, float] = field(default_factory=dict)
    """p^ = Q* π_β everywhere."""
    extracted: list[Extracted] = field(default_factory=list)


def examine(*, mdps: int, states: int, actions: int, seed: int) -> Findings:
    """All claims on `mdps` random MDPs."""
    rng = np.random.default_rng([seed, actions])
    found = Findings(actions, mdps)
    rows = {(*way, beta): Extracted(*way, beta) for way in WAYS for beta in BETAS}
    for _ in range(mdps):
        mdp = random_mdp(rng, states=states, actions=actions)
        best_SA = optimal_values(mdp)
        behavior = policy_value(mdp, mdp.behavior_SA)
        optimum = policy_value(mdp, np.eye(actions)[best_SA.argmax(1)])
        for residual_mass in ("spread", "token"):
            likelihood_SA = likelihood_fixed_point(mdp, residual_mass=residual_mass)
            least_SA = best_SA * mdp.behavior_SA
            holds = (likelihood_SA >= least_SA - ROUNDING).all()
            add(found.lower_bound, residual_mass, holds / mdps)
            add(
                found.upper_bound, residual_mass, (likelihood_SA <= best_SA + ROUNDING).all() / mdps
            )
            add(
                found.equality,
                residual_mass,
                np.allclose(likelihood_SA, least_SA, atol=1e-8) / mdps,
            )
            for (other, policy_extraction, beta), row in rows.items():
                if other == residual_mass:
                    policy_SA = extracted_policy(
                        mdp, likelihood_SA, beta=beta, policy_extraction=row_kind(policy_extraction)
                    )
                    value = policy_value(mdp, policy_SA)
                    row.gap_closed += (value - behavior) / (optimum - behavior) / mdps
                    row.worse += (value < behavior - ROUNDING) / mdps
    found.extracted = list(rows.values())
    return found


def row_kind(name: str) -> PolicyExtraction:
    """The name as what it is one of."""
    return "ratio" if name == "ratio" else "probability"


def add(shares: dict[str, float], name: str, part: float) -> None:
    """Adds one MDP's part to a share."""
    shares[name] = shares.get(name, 0.0) + float(part)


def main() -> None:
    """Prints a table per number of actions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--mdps", type=int, default=200)
    parser.add_argument("--states", type=int, default=10)
    parser.add_argument("--actions", type=int, nargs="+", default=[3, 5, 20, 50])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sizes = [
        examine(mdps=options.mdps, states=options.states, actions=actions, seed=options.seed)
        for actions in options.actions
    ]
    if options.json:
        print(json.dumps([asdict(found) for found in sizes], indent=2))
        return
    for found in sizes:
        print(f"\n{found.actions} actions, {found.mdps} MDPs, γ = 0.95, share of MDPs:")
        for residual_mass in ("spread", "token"):
            print(
                f"  {residual_mass:6}  p >= Q*π {found.lower_bound[residual_mass]:6.1%}"
                f"   p <= Q* {found.upper_bound[residual_mass]:6.1%}"
                f"   p = Q*π {found.equality[residual_mass]:6.1%}"
            )
        print("  gap from behavior to optimum that is closed (worse than behavior in)")
        print("  " + " " * 20 + "".join(f"{f'β = {beta:g}':>18}" for beta in BETAS))
        for residual_mass, policy_extraction in WAYS:
            cells = [
                f"{row.gap_closed:7.1%} ({row.worse:6.1%})"
                for row in found.extracted
                if (row.residual_mass, row.policy_extraction) == (residual_mass, policy_extraction)
            ]
            print(
                f"  {residual_mass:6} {policy_extraction:12} "
                + "".join(f"{cell:>18}" for cell in cells)
            )


if __name__ == "__main__":
    main()
