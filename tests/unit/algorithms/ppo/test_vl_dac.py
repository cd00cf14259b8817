"""The preset VL-DAC: value and gradient by hand, and where λ-PPO's step ratio differs.

Two responses: a thought and an action token with advantage 2, one action token with -1. Every old
probability is 1/2; the ratios are 1.05 and 1.3, and 1.2. The clip is 0.1.
"""

from dataclasses import replace
from math import log
from typing import Any, cast

import pytest
import torch

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.samples import Old
from forethought.algorithms.ppo.updates import policy_loss, value_loss
from forethought.algorithms.registry import preset
from forethought.models.actor_critic import Scores

MASK_BT = torch.tensor([[True, True], [True, False]])
THOUGHT_BT = torch.tensor([[True, False], [False, False]])
OLD_BT = torch.tensor([[log(0.5), log(0.5)], [log(0.5), 0.0]])


class Tokens:
    """Which tokens are the completions'."""

    mask_BT = MASK_BT


def vl_dac() -> PPOConfig:
    """λ-PPO's defaults under the preset."""
    found = preset("vl-dac")
    assert found is not None
    return replace(PPOConfig(), **dict(found.settings))


def given(ratios: list[list[float]], values: list[float]) -> tuple[Scores, Old]:
    """Both responses, and what was known of them."""
    new_BT = OLD_BT + torch.tensor(ratios).log()
    values_B = torch.tensor(values).requires_grad_()
    zeros_BT = torch.zeros(2, 2)
    old = Old(
        logprobs_BT=OLD_BT,
        thought_mask_BT=THOUGHT_BT,
        values_B=torch.tensor(values),
        advantages_B=torch.tensor([2.0, -1.0]),
        value_targets_B=torch.tensor([2.0, 2.0]),
        reference_logprobs_BT=zeros_BT,
        importance_BT=MASK_BT.float(),
    )
    return Scores(new_BT.requires_grad_(), zeros_BT, values_B), old


def test_each_token_has_its_own_ratio() -> None:
    """1/2 ((-2 · 1.05 - 2 · 1.1) / 2 + 1.2): the second token is beyond its range and flat, the
    first is followed all the same, and the last is pulled back."""
    scores, old = given([[1.05, 1.3], [1.2, 1.0]], [1.0, 3.0])
    result = policy_loss(scores, cast(Any, Tokens()), old, vl_dac())
    assert result.loss.item() == pytest.approx(-0.475)
    (slope_BT,) = torch.autograd.grad(result.loss, scores.logprobs_BT)
    assert slope_BT.tolist() == [pytest.approx([-0.525, 0.0]), pytest.approx([0.6, 0.0])]


def test_the_step_ratio_lets_go_of_the_whole_response() -> None:
    """λ = 1: 1.05 · 1.3 is beyond 1.1, so nothing of the first response is followed."""
    scores, old = given([[1.05, 1.3], [1.2, 1.0]], [1.0, 3.0])
    step = replace(PPOConfig(), thought_weight=1.0)
    result = policy_loss(scores, cast(Any, Tokens()), old, step)
    assert result.loss.item() == pytest.approx((-2 * 1.1 + 1.2) / 2)
    (slope_BT,) = torch.autograd.grad(result.loss, scores.logprobs_BT)
    assert slope_BT.tolist() == [pytest.approx([0.0, 0.0]), pytest.approx([0.6, 0.0])]


def test_thoughts_count_as_actions_do() -> None:
    """Inside the range on both tokens: the slopes of thought and action are -2 r / 2 / 2."""
    scores, old = given([[1.05, 0.95], [1.0, 1.0]], [1.0, 3.0])
    result = policy_loss(scores, cast(Any, Tokens()), old, vl_dac())
    (slope_BT,) = torch.autograd.grad(result.loss, scores.logprobs_BT)
    assert slope_BT.tolist() == [pytest.approx([-0.525, -0.475]), pytest.approx([0.5, 0.0])]


def test_one_value_per_environment_step() -> None:
    """In units of a deviation of 2: ½ mean(½², ½²); slopes (V - R) / 4 / 2."""
    scores, old = given([[1.0, 1.0], [1.0, 1.0]], [1.0, 3.0])
    result = value_loss(scores, old, torch.tensor(2.0), vl_dac())
    assert result.loss.item() == pytest.approx(0.125)
    assert scores.values_B is not None
    (slope_B,) = torch.autograd.grad(result.loss, scores.values_B)
    assert slope_B.tolist() == pytest.approx([-0.125, 0.125])


def test_its_critic_does_not_move_the_model_and_learns_first() -> None:
    config = vl_dac()
    assert (config.critic_gradient, config.critic_warmup) == ("head", 2)
    assert (config.advantage, config.kl_coefficient, config.kl_use) == ("gae", 0.04, "loss")
