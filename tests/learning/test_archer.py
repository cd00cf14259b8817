"""Offline ArCHer takes the turn that pays where imitation does not, and a broken one does not."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from forethought.algorithms.archer import critic
from forethought.algorithms.archer import train as archer
from forethought.algorithms.archer.config import ArcherConfig
from forethought.generation.huggingface import load_policy
from tests.learning.breakage import distort
from tests.learning.stitching import MISSED, STITCHED, newest_model, success_from_west

pytestmark = pytest.mark.slow


def turns(settings: dict[str, Any], **changes: Any) -> int:
    """Of three seeds, how many take the turn after training, by their most likely tokens. The
    last bits of a processor's sums can decide one of them."""
    config = ArcherConfig(critic_epochs=6.0, actor_epochs=4.0, beta=8.0, **settings)
    config = replace(config, **changes)
    found: list[float] = []
    for seed in range(3):
        run = archer.train_archer(replace(config, seed=seed, output=f"{config.output}_{seed}"))
        found.append(success_from_west(load_policy(str(newest_model(run)), slots=4)))
    assert all(share <= MISSED or share >= STITCHED for share in found)
    return sum(share >= STITCHED for share in found)


def test_it_takes_the_turn(settings: dict[str, Any]) -> None:
    assert turns(settings) >= 2


def test_imitation_does_not(settings: dict[str, Any]) -> None:
    """The same three phases, all answers alike in the last one."""
    assert turns(settings, beta=0.0, critic_epochs=0.1) == 0


def test_without_the_next_state_it_does_not(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reward alone comes a step behind the turn."""
    distort(monkeypatch, critic, "td_targets", next_values_N=torch.zeros_like)
    assert turns(settings) == 0


def test_with_the_advantage_turned_round_it_does_not(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    distort(monkeypatch, archer, "advantage_weights", advantages_U=torch.neg)
    assert turns(settings) == 0
