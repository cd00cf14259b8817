"""Ids of prompts are remembered, for prompts come again; but not without end."""

import pytest

from forethought.models import encoding
from forethought.models.actor_critic import ActorCritic
from forethought.models.encoding import Encoder
from forethought.types import Message

Tiny = tuple[ActorCritic, Encoder]


def ids_of(encoder: Encoder, number: int) -> tuple[int, ...]:
    return encoder.encode([Message("user", f"{number} is the current number")]).token_ids


def test_a_prompt_that_comes_again_is_not_tokenized_again(tiny: Tiny) -> None:
    _, encoder = tiny
    first = ids_of(encoder, 1)
    assert ids_of(encoder, 2) != first
    assert ids_of(encoder, 1) is first


def test_different_prompts_do_not_fill_the_memory(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, encoder = tiny
    monkeypatch.setattr(encoding, "MAX_REMEMBERED_TOKENS", 100)
    for number in range(100):
        ids_of(encoder, number)
        held = encoder._ids_of_layout  # pyright: ignore[reportPrivateUsage]
        assert sum(map(len, held.values())) <= 100
    last = ids_of(encoder, 99)
    assert ids_of(encoder, 99) is last
