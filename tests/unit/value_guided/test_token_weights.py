"""What acts: what the behavior does, times exp(β · what it is worth).

Behavior 0.5, 0.4, 0.1 and likelihood 0.1, 0.36, 0.1 have the ratios 0.2, 0.9 and 1.
"""

from math import exp

import pytest
import torch

from forethought.configs.acting import ActingConfig, SupportConfig
from forethought.value_guided.policy import weigh_by_likelihood

BEHAVIOR_P, LIKELIHOOD_P = [0.5, 0.4, 0.1], [0.1, 0.36, 0.1]


@pytest.mark.parametrize(
    ("acting", "support", "weights"),
    [
        pytest.param(
            ActingConfig(beta=0.0), SupportConfig(), [0.5, 0.4, 0.1], id="beta 0: the behavior"
        ),
        pytest.param(
            ActingConfig(beta=2.0),
            SupportConfig(),
            [0.5 * exp(0.4), 0.4 * exp(1.8), 0.1 * exp(2.0)],
            id="ratio",
        ),
        pytest.param(
            ActingConfig(beta=2.0, policy_extraction="probability"),
            SupportConfig(),
            [0.5 * exp(0.2), 0.4 * exp(0.72), 0.1 * exp(0.2)],
            id="probability",
        ),
        pytest.param(
            ActingConfig(beta=2.0),
            SupportConfig(min_probability=0.2),
            [0.5 * exp(0.4), 0.4 * exp(1.8), 0.1],
            id="unsupported: no bonus",
        ),
        pytest.param(
            ActingConfig(beta=2.0),
            SupportConfig(floor=0.2),
            [0.5 * exp(0.4), 0.4 * exp(1.8), 0.1 * exp(1.0)],
            id="floored",
        ),
        pytest.param(
            ActingConfig(beta=2.0, top_p=0.6),
            SupportConfig(),
            # 0.75, 2.42 and 0.74 of 3.90: the second has 0.62 of the mass, enough alone.
            [0.0, 1.0, 0.0],
            id="nucleus of the acting policy",
        ),
    ],
)
def test_what_acts(acting: ActingConfig, support: SupportConfig, weights: list[float]) -> None:
    assert acts(BEHAVIOR_P, LIKELIHOOD_P, acting, support) == pytest.approx(normalized(weights))


def test_a_dummy_is_worth_nothing() -> None:
    acting = ActingConfig(beta=2.0)
    found = acts(BEHAVIOR_P, LIKELIHOOD_P, acting, SupportConfig(), residual=2)
    assert found == pytest.approx(normalized([0.5 * exp(0.4), 0.4 * exp(1.8), 0.1]))


def test_a_ratio_above_one_counts_as_one() -> None:
    found = acts([0.9, 0.1, 0.0], [0.45, 0.5, 0.0], ActingConfig(beta=3.0), SupportConfig())
    assert found == pytest.approx(normalized([0.9 * exp(1.5), 0.1 * exp(3.0), 0.0]))


def acts(
    behavior: list[float],
    likelihood: list[float],
    acting: ActingConfig,
    support: SupportConfig,
    residual: int | None = None,
) -> list[float]:
    """Probabilities of three tokens; a fourth has what the likelihood leaves over."""
    behavior_1V = torch.tensor([[*behavior, 0.0]]).log()
    likelihood_1V = torch.tensor([[*likelihood, 1 - sum(likelihood)]]).log()
    logits_1V = weigh_by_likelihood(
        behavior_1V, likelihood_1V, acting, support=support, residual=residual
    )
    return torch.softmax(logits_1V, -1)[0, :3].tolist()


def normalized(weights: list[float]) -> list[float]:
    return [weight / sum(weights) for weight in weights]
