"""Servers: with patience, without it, and without room."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.tiny import TinySize, make_tiny
from tests.unit.serving.served import LIMITS, Served, serve


@pytest.fixture
def served() -> Generator[Served]:
    yield from serve(LIMITS)


@pytest.fixture
def hasty() -> Generator[Served]:
    """A server without patience."""
    yield from serve(replace(LIMITS, timeout_s=0.2))


@pytest.fixture
def narrow() -> Generator[Served]:
    """Without patience, and with room for one."""
    yield from serve(replace(LIMITS, timeout_s=0.2, concurrency=1))


@pytest.fixture
def crowded() -> Generator[Served]:
    """With patience, and with room for one."""
    yield from serve(replace(LIMITS, concurrency=1))


WORDS = ["move", "current", "number", "to", "target", "answer", "thoughts", "smaller", "so"]


@pytest.fixture(scope="session")
def saved_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model of sharpened random weights: what it writes depends on words."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, size=40)) for _ in range(50)]
    loaded = make_tiny(
        texts, seed=0, size=TinySize(hidden_size=64, intermediate_size=128, layers=2)
    )
    with torch.no_grad():
        for parameter in loaded.model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(1.5)
    folder = tmp_path_factory.mktemp("model")
    HuggingFacePolicy(loaded, slots=1).save(folder)
    return folder
