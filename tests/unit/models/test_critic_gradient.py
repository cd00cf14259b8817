"""The critic's error trains its head, and the model only where that is wanted."""

import pytest
import torch
from torch import nn

from forethought.models.actor_critic import ActorCritic, ValueHead
from forethought.models.batching import Example, build_batch
from forethought.models.encoding import Encoder
from forethought.models.tiny import make_tiny
from forethought.types import Message


@pytest.mark.parametrize("reaches_model", [True, False])
def test_gradient_of_a_value(reaches_model: bool) -> None:
    loaded = make_tiny(["Where? Here."], seed=0)
    width = loaded.model.config.get_text_config().hidden_size
    head = ValueHead(width, generator=torch.Generator().manual_seed(0))
    for parameter in head.parameters():  # its last layer begins with zeros, which pass nothing on
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(0))
    module = ActorCritic(loaded.model, head)
    encoder = Encoder(loaded.model, loaded.processor)
    prompt = encoder.encode((Message("user", "Where?", None),))
    batch = build_batch([[Example(prompt, (5, 6))]], encoder)
    values_B = module(batch, critic_gradient=reaches_model).values_B
    values_B.sum().backward()
    assert learns(head)
    assert learns(module.model) == reaches_model


def learns(module: nn.Module) -> bool:
    return any(p.grad is not None and bool(p.grad.any()) for p in module.parameters())
