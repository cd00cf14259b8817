"""Truncated importance weights: by hand, in the loss, and against an engine that is perturbed."""

from math import exp, log
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.samples import Old, Sample
from forethought.algorithms.ppo.updates import PPOContext, policy_loss, weigh_mismatch
from forethought.configs.acting import GenerationConfig
from forethought.errors import OffPolicyError
from forethought.losses.ppo import truncated_importance_weights
from forethought.models.actor_critic import Scores


@pytest.mark.parametrize(
    ("ratio", "weight"),
    [
        pytest.param(1.0, 1.0, id="equal"),
        pytest.param(0.25, 0.25, id="less likely than it was drawn"),
        pytest.param(1.5, 1.5, id="likelier, below the cap"),
        pytest.param(2.0, 2.0, id="at the cap"),
        pytest.param(9.0, 2.0, id="above: the cap"),
    ],
)
@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_weight(ratio: float, weight: float, shape: tuple[int, ...]) -> None:
    found = truncated_importance_weights(
        logprobs=torch.full(shape, log(ratio) - 1.0),
        sampled_logprobs=torch.full(shape, -1.0),
        cap=2.0,
    )
    assert found.shape == shape
    assert found.item() == pytest.approx(weight)


def test_wrong_calls_are_refused() -> None:
    one = torch.zeros(1)
    with pytest.raises(ValueError, match="cap: expected more than 0, got 0"):
        truncated_importance_weights(logprobs=one, sampled_logprobs=one, cap=0.0)
    with pytest.raises(ValueError, match="shape"):
        truncated_importance_weights(logprobs=one, sampled_logprobs=torch.zeros(2), cap=1.0)
    moving = torch.zeros(1, requires_grad=True)
    with pytest.raises(ValueError, match="gradient"):
        truncated_importance_weights(logprobs=moving, sampled_logprobs=one, cap=1.0)


# In PPO: two responses of two tokens, all of them actions; the first one's advantage is 3, the
# second one's -2. Trainer and engine differ by a factor of e^0.1 and e^0.3 on the first, e^-0.2
# and e^1 on the second.

SAMPLED = ([-1.0, -2.0], [-0.5, -3.0])
OWN = ([-0.9, -1.7], [-0.7, -2.0])
ADVANTAGES = (3.0, -2.0)


def sample(logprobs: list[float]) -> Sample:
    return Sample(
        example=cast(Any, None),
        is_thought=[False, False],
        old_logprobs=logprobs,
        old_value=0.0,
        advantage=0.0,
        value_target=0.0,
        reference_logprobs=logprobs,
        importance=[1.0, 1.0],
    )


def weighted(config: PPOConfig) -> tuple[list[Sample], dict[str, float]]:
    run: Any = SimpleNamespace(gather=lambda items: items)
    context = PPOContext(cast(Any, None), cast(Any, None), config, run)
    samples, metrics = weigh_mismatch(
        [sample(row) for row in SAMPLED], [sample(row) for row in OWN], context
    )
    return samples, dict(metrics)


def config_of(ratio: str, cap: float | None) -> PPOConfig:
    # Responses may be stale, so that a difference of this size is not refused.
    engines = GenerationConfig(("http://engine:1",), importance_cap=cap, max_staleness=1)
    return PPOConfig(ratio=cast(Any, ratio), generation=engines)


def test_the_mismatch_is_logged() -> None:
    _, metrics = weighted(config_of("step", None))
    differences = (0.1, 0.3, -0.2, 1.0)
    assert metrics["engine_mismatch_mean"] == pytest.approx(1.6 / 4)
    assert metrics["engine_mismatch_max"] == pytest.approx(1.0)
    assert metrics["engine_kl"] == pytest.approx(sum(exp(d) - 1 - d for d in differences) / 4)


@pytest.mark.parametrize(
    ("log_ratio", "is_refused"),
    [
        pytest.param(0.30, False, id="k3 is 0.04986: rounding, at most"),
        pytest.param(-0.34, True, id="k3 is 0.05177: other weights"),
    ],
)
def test_an_engine_with_other_weights_is_refused(log_ratio: float, is_refused: bool) -> None:
    config = PPOConfig(generation=GenerationConfig(("http://engine:1",)))
    run: Any = SimpleNamespace(gather=lambda items: items)
    context = PPOContext(cast(Any, None), cast(Any, None), config, run)
    both = [sample([-1.0, -2.0])], [sample([-1.0 + log_ratio, -2.0 + log_ratio])]
    if not is_refused:
        weigh_mismatch(*both, context)
        return
    with pytest.raises(OffPolicyError) as error:
        weigh_mismatch(*both, context)
    assert str(error.value) == (
        "engines and trainer differ by 0.052 nats per token — expected at most 0.05: an engine has "
        "other weights than it says; nothing was learned from its responses. Restart the engines, "
        "then go on with --resume; if their arithmetic differs so much, train PPO with "
        "--generation.importance-cap 2"
    )


@pytest.mark.parametrize(
    ("ratio", "cap", "weights"),
    [
        ("step", None, [[1.0, 1.0], [1.0, 1.0]]),
        ("step", 2.0, [[exp(0.4)] * 2, [2.0] * 2]),  # exp(0.8) = 2.2 is cut
        ("token", None, [[1.0, 1.0], [1.0, 1.0]]),
        ("token", 2.0, [[exp(0.1), exp(0.3)], [exp(-0.2), 2.0]]),
    ],
)
def test_value_and_gradient_in_the_loss(
    ratio: str, cap: float | None, weights: list[list[float]]
) -> None:
    """At the first update every ratio is 1: L = -mean(w A), and each token's slope is its share
    of -w A."""
    config = config_of(ratio, cap)
    samples, _ = weighted(config)
    assert [s.importance for s in samples] == [pytest.approx(row) for row in weights]
    own_BT = torch.tensor(OWN)
    old = Old(
        logprobs_BT=own_BT,
        thought_mask_BT=torch.zeros(2, 2, dtype=torch.bool),
        values_B=torch.zeros(2),
        advantages_B=torch.tensor(ADVANTAGES),
        value_targets_B=torch.zeros(2),
        reference_logprobs_BT=own_BT,
        importance_BT=torch.tensor([s.importance for s in samples]),
    )
    logprobs_BT = own_BT.clone().requires_grad_()
    tokens: Any = SimpleNamespace(mask_BT=torch.ones(2, 2, dtype=torch.bool))
    result = policy_loss(Scores(logprobs_BT, torch.zeros(2, 2), None), tokens, old, config)
    result.loss.backward()
    terms = [
        [-w * advantage for w in row] for row, advantage in zip(weights, ADVANTAGES, strict=True)
    ]
    if ratio == "step":  # Each of B responses counts once, and both its tokens move it.
        expected = sum(row[0] for row in terms) / 2
        slopes = [[term / 2 for term in row] for row in terms]
    else:
        expected = sum(map(sum, terms)) / 4
        slopes = [[term / 4 for term in row] for row in terms]
    assert result.loss.item() == pytest.approx(expected)
    assert logprobs_BT.grad is not None
    assert logprobs_BT.grad.tolist() == [pytest.approx(row) for row in slopes]


def test_weights_undo_a_perturbed_engine() -> None:
    """An engine that draws from q instead of π: with weights, the mean policy gradient is π's.

    Four actions, logits θ; the engine's are 0.8 higher for one of them. The gradient of the
    expected advantage is Σ π(a) A(a) ∇log π(a); samples of q without weights miss it.
    """
    logits_V = torch.tensor([0.3, -0.2, 0.1, 0.0])
    perturbed_V = logits_V + torch.tensor([0.0, 0.8, 0.0, 0.0])
    advantage_V = torch.tensor([1.0, -0.5, 0.2, -1.0])
    pi_V, q_V = logits_V.softmax(0), perturbed_V.softmax(0)
    slopes_VV = torch.eye(4) - pi_V  # ∇log π(a) of each action a
    exact_V = (pi_V * advantage_V) @ slopes_VV
    drawn_N = torch.multinomial(
        q_V, 200_000, replacement=True, generator=torch.Generator().manual_seed(0)
    )
    weights_N = truncated_importance_weights(
        logprobs=pi_V.log()[drawn_N], sampled_logprobs=q_V.log()[drawn_N], cap=2.0
    )
    plain_V = (advantage_V[drawn_N, None] * slopes_VV[drawn_N]).mean(0)
    corrected_V = ((weights_N * advantage_V[drawn_N])[:, None] * slopes_VV[drawn_N]).mean(0)
    assert (corrected_V - exact_V).abs().max() < 0.005
    assert (plain_V - exact_V).abs().max() > 0.05
