"""The critic speaks in units of return, and learns in units of their deviation."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.samples import Old
from forethought.algorithms.ppo.updates import value_loss
from forethought.generation.huggingface import VALUE_HEAD_FILE, load_value_head
from forethought.models.actor_critic import Scores, ValueHead

WIDTH = 6
HIDDEN = torch.randn(5, WIDTH, generator=torch.Generator().manual_seed(3))


def trained_head() -> ValueHead:
    """One whose last layer is not the zeros that it begins with."""
    head = ValueHead(WIDTH, generator=torch.Generator().manual_seed(0))
    for parameter in head.parameters():
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(1))
    return head


def test_a_new_head_says_the_mean() -> None:
    head = ValueHead(WIDTH, generator=torch.Generator().manual_seed(0))
    assert head(HIDDEN).tolist() == [0.0] * 5
    head.rescale(8.5, 2.0)
    assert head(HIDDEN).tolist() == [8.5] * 5


def test_another_scale_keeps_what_was_learned() -> None:
    head = trained_head()
    before = head(HIDDEN)
    head.rescale(10.0, 4.0)
    assert torch.allclose(head(HIDDEN), before, atol=1e-5)
    head.rescale(-3.0, 0.5)
    assert torch.allclose(head(HIDDEN), before, atol=1e-5)
    # In the layers' own units: (V - mean) / deviation.
    assert torch.allclose(head.layers(HIDDEN).squeeze(-1), (before + 3) / 0.5, atol=1e-4)


def test_a_critic_that_was_saved_without_a_scale_says_what_it_said(tmp_path: Path) -> None:
    head = trained_head()
    old = {name: tensor for name, tensor in head.state_dict().items() if "layers" in name}
    save_file(old, tmp_path / VALUE_HEAD_FILE)
    loaded = load_value_head(tmp_path, WIDTH)
    assert loaded is not None
    assert torch.equal(loaded(HIDDEN), head(HIDDEN))


def test_the_scale_is_saved(tmp_path: Path) -> None:
    head = trained_head()
    head.rescale(7.0, 3.0)
    save_file(head.state_dict(), tmp_path / VALUE_HEAD_FILE)
    assert float(load_file(tmp_path / VALUE_HEAD_FILE)["deviation"]) == 3
    loaded = load_value_head(tmp_path, WIDTH)
    assert loaded is not None
    assert torch.equal(loaded(HIDDEN), head(HIDDEN))


def old_of(values_B: list[float], returns_B: list[float]) -> Old:
    size, nothing = len(values_B), torch.zeros(len(values_B), 1)
    return Old(
        logprobs_BT=nothing,
        thought_mask_BT=nothing.bool(),
        values_B=torch.tensor(values_B),
        advantages_B=torch.zeros(size),
        value_targets_B=torch.tensor(returns_B),
        reference_logprobs_BT=nothing,
        importance_BT=nothing + 1,
    )


def loss_of(values_B: Tensor, old: Old, clip: float | None) -> Tensor:
    nothing = torch.zeros(len(values_B), 1)
    scores = Scores(nothing, nothing, values_B)
    config = replace(PPOConfig(), value_clip=clip)
    return value_loss(scores, old, torch.tensor(3.0), config).loss


def test_the_loss_counts_in_deviations() -> None:
    """V 4, 9 and R 10, 6, deviation 3: ½ · mean((6/3)², (3/3)²) = ½ · 5/2; dL/dV = (V-R)/9/2."""
    values_B = torch.tensor([4.0, 9.0], requires_grad=True)
    loss = loss_of(values_B, old_of([0.0, 0.0], [10.0, 6.0]), clip=None)
    loss.backward()
    assert loss.item() == pytest.approx(1.25)
    assert values_B.grad is not None
    assert np.allclose(values_B.grad, [-6 / 18, 3 / 18])


def test_the_clip_counts_in_deviations() -> None:
    """0.5 is 1.5 in units of return: from 0 towards 10, 2 is beyond and 1 is not."""
    values_B = torch.tensor([2.0, 1.0], requires_grad=True)
    loss_of(values_B, old_of([0.0, 0.0], [10.0, 10.0]), clip=0.5).backward()
    assert values_B.grad is not None
    assert np.allclose(values_B.grad, [0, -9 / 18])
