"""A model answers a stranger, through the protocol, as it answers us."""

import numpy as np
import pytest
import torch

from forethought.chat.http import Endpoint
from forethought.chat.policy import ApiPolicy
from forethought.configs.acting import ApiConfig
from forethought.generation.contract import GenerationRequest, Policy
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.tiny import TinySize, make_tiny
from forethought.serving.admission import Limits
from forethought.serving.engine import Engine
from forethought.serving.server import serving
from forethought.types import Completion, Message

WORDS = ["move", "current", "number", "to", "target", "answer", "thoughts", "smaller", "so"]
LIMITS = Limits(
    request_bytes=2**20, concurrency=64, timeout_s=60.0, prompt_bytes=2**20, max_new_tokens=12
)


@pytest.fixture(scope="module")
def policy() -> HuggingFacePolicy:
    """Sharpened random weights: choices depend on words and image."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, size=40)) for _ in range(50)]
    size = TinySize(hidden_size=64, intermediate_size=128, layers=2)
    loaded = make_tiny(texts, seed=0, size=size)
    with torch.no_grad():
        for parameter in loaded.model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(1.5)
    return HuggingFacePolicy(loaded, slots=4)


def conversations() -> list[tuple[Message, ...]]:
    """With images, several turns, and none of either."""
    noise = np.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    images = (noise, np.zeros_like(noise))
    return [
        (Message("user", "move the number"),),
        (Message("user", "current number", images[0]),),
        (Message("user", "current number", images[1]),),
        (Message("system", "answer so"), Message("user", "target"), Message("assistant", "so")),
    ]


def answers(policy: Policy, temperature: float) -> list[Completion]:
    for key, messages in enumerate(conversations()):
        prompt = policy.prompt(messages)
        policy.submit(GenerationRequest(key, prompt, 7, 12, temperature))
    found: dict[int, Completion] = {}
    while results := policy.advance():
        found |= {result.key: result.completion for result in results}
    return [completion for _, completion in sorted(found.items())]


def test_greedy_answers_are_equal_images_and_turns_included(policy: HuggingFacePolicy) -> None:
    own = answers(policy, 0.0)
    engine = Engine(policy, policy.require_room, seed=0)
    with serving(engine, model="m", host="127.0.0.1", port=0, limits=LIMITS) as url:
        api = ApiPolicy("m", Endpoint(url), ApiConfig(concurrency=4))
        behind = answers(api, 0.0)
        sampled = [[c.text for c in answers(api, 1.0)] for _ in range(2)]
        api.close()
    engine.stop()
    assert [c.text for c in behind] == [c.text for c in own]
    assert [c.finish_reason for c in behind] == [c.finish_reason for c in own]
    assert len({c.text for c in own}) == 4  # Each conversation, and each image, has its own.
    assert sampled[0] == sampled[1] != [c.text for c in own]
    assert api.usage.prompt_tokens == 3 * sum(
        len(policy.prompt(messages).token_ids) for messages in conversations()
    )
    assert api.usage.retries == 0
