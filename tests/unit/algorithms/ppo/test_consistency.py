"""PPO held to what actions meant at the start (APC): by hand, and the settings."""

from dataclasses import replace
from math import log
from typing import Any, cast

import pytest
import torch

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.samples import Old
from forethought.algorithms.ppo.updates import action_consistency
from forethought.errors import ConfigError
from forethought.models.actor_critic import Scores


class Tokens:
    """Two answers: a thought and two action tokens; a thought and one."""

    mask_BT = torch.tensor([[True, True, True], [True, True, False]])


def test_actions_alone_count_thoughts_and_padding_do_not() -> None:
    """p: 0.5 · 0.5 against 0.5 · 0.1, and 0.4 against 0.4: (0.2² + 0) / 2."""
    new_BT = torch.tensor([[log(0.1), log(0.5), log(0.5)], [log(0.2), log(0.4), 0.0]])
    new_BT.requires_grad_()
    old_BT = torch.tensor([[log(0.9), log(0.5), log(0.1)], [log(0.8), log(0.4), 0.0]])
    is_thought_BT = torch.tensor([[True, False, False], [True, False, False]])
    zeros_B, zeros_BT = torch.zeros(2), torch.zeros(2, 3)
    old = Old(zeros_BT, is_thought_BT, zeros_B, zeros_B, zeros_B, old_BT, zeros_BT + 1)
    found = action_consistency(Scores(new_BT, zeros_BT, None), cast(Any, Tokens()), old)
    assert found.item() == pytest.approx(0.02)
    # 2 p (p - q) / B = 2 · 0.25 · 0.2 / 2 on each token of the first action.
    (slope_BT,) = torch.autograd.grad(found, new_BT)
    assert slope_BT.tolist() == [
        pytest.approx([0.0, 0.05, 0.05]),
        pytest.approx([0.0, 0.0, 0.0], abs=1e-8),
    ]


def test_a_reference_is_kept_where_something_asks_for_it() -> None:
    assert not PPOConfig().has_reference
    assert PPOConfig(consistency_coefficient=0.1).has_reference
    assert PPOConfig(kl_coefficient=0.1).has_reference
    with pytest.raises(ConfigError, match=r"consistency_coefficient is -1\.0 — expected 0 or more"):
        replace(PPOConfig(), consistency_coefficient=-1.0)
