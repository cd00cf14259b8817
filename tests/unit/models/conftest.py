"""A tiny model with sharpened random weights: its choices depend on words and image."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from forethought.models.actor_critic import ActorCritic, ValueHead
from forethought.models.encoding import Encoder
from forethought.models.tiny import make_tiny
from forethought.types import Message, Prompt

WORDS = ["move", "the", "current", "number", "to", "target", "answer", "thoughts", "smaller", "so"]

MakePrompts = Callable[[int], list[Prompt]]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def tiny() -> tuple[ActorCritic, Encoder]:
    rng = np.random.default_rng(0)
    model, processor, _ = make_tiny(
        [" ".join(rng.choice(WORDS, size=40)) for _ in range(50)], seed=0
    )
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(1.5)
    head = ValueHead(128, generator=torch.Generator().manual_seed(0))
    last = head.layers[-1]
    assert isinstance(last, torch.nn.Linear)
    torch.nn.init.normal_(last.weight, generator=torch.Generator().manual_seed(1))
    return ActorCritic(model, head).eval(), Encoder(model, processor)


@pytest.fixture
def make_prompts(tiny: tuple[ActorCritic, Encoder]) -> MakePrompts:
    """Prompts of unequal length, each with an image of its own."""

    def make(count: int) -> list[Prompt]:
        rng = np.random.default_rng(1)
        prompts: list[Prompt] = []
        for _ in range(count):
            text = " ".join(rng.choice(WORDS, size=int(rng.integers(3, 60))))
            image = rng.integers(0, 256, (64, 64, 3)).astype(np.uint8)
            prompts.append(tiny[1].encode([Message("user", text, image)]))
        return prompts

    return make
