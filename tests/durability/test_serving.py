"""Attacks on the server, with fewer tries than docs/reliability.md tells of: none does harm."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.tiny import TinySize, make_tiny
from tests.durability.serving_attacks import ATTACKS, Found

pytestmark = pytest.mark.slow

MOST_TRIES = 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Random weights, which seldom end an answer by themselves."""
    folder: Path = tmp_path_factory.mktemp("model")
    torch.set_num_threads(1)
    size = TinySize(hidden_size=64, intermediate_size=128, layers=2)
    loaded = make_tiny(["move the number to the target, so answer"] * 50, seed=0, size=size)
    HuggingFacePolicy(loaded, slots=1).save(folder)
    return str(folder)


@pytest.mark.parametrize(
    ("attack", "tries"),
    [pytest.param(attack, tries, id=attack.__name__) for attack, tries in ATTACKS],
)
def test_no_harm(model: str, attack: Callable[[str, int], Found], tries: int) -> None:
    found = attack(model, min(tries, MOST_TRIES))
    assert found.failures == 0, found
