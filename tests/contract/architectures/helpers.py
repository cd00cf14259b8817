"""Prompts for any of the models, and what the tests do with them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.models.actor_critic import ValueHead
from forethought.models.batching import Example, Rows, build_batch
from forethought.types import Image, Message, Prompt
from tests.contract.architectures.builders import TEXT

SIZES = ((32, 32), (32, 64), (64, 32), (64, 64), (48, 40), (24, 70))
"""Heights and widths: LLaVA-NeXT cuts them into 2 or 4 tiles, Qwen-VL into 4 to 16 tokens."""


def load(folder: str, *, slots: int = 8) -> HuggingFacePolicy:
    """The policy in a folder, as a user loads it, with a critic."""
    return with_critic(load_policy(folder, slots=slots))


def with_critic(policy: HuggingFacePolicy) -> HuggingFacePolicy:
    """Gives a policy a critic that judges at random, unlike a new one, which says 0."""
    width = policy.module.model.config.get_text_config().hidden_size
    head = ValueHead(width, generator=torch.Generator().manual_seed(0))
    last = head.layers[-1]
    assert isinstance(last, torch.nn.Linear)
    torch.nn.init.normal_(last.weight, generator=torch.Generator().manual_seed(1))
    policy.module.value_head = head
    return policy


def make_prompts(policy: HuggingFacePolicy, count: int) -> list[Prompt]:
    """Of unequal length; where the model sees, with no image, one, or two."""
    rng = np.random.default_rng(1)
    return [policy.prompt(_messages(rng, n % 5, policy.encoder.reads_images)) for n in range(count)]


def _messages(rng: np.random.Generator, kind: int, sees: bool) -> list[Message]:
    if not sees or kind == 0:
        return [Message("user", _words(rng))]
    if kind == 1:
        return [
            Message("user", _words(rng), random_image(rng)),
            Message("assistant", _words(rng)),
            Message("user", _words(rng), random_image(rng)),
        ]
    return [Message("user", _words(rng), random_image(rng))]


def _words(rng: np.random.Generator) -> str:
    return " ".join(rng.choice(TEXT.split(), size=int(rng.integers(3, 40))))


def random_image(rng: np.random.Generator, size: tuple[int, int] | None = None) -> Image:
    height, width = size or SIZES[int(rng.integers(len(SIZES)))]
    return rng.integers(0, 256, (height, width, 3)).astype(np.uint8)


def limits_for(prompts: Sequence[Prompt]) -> list[int]:
    return np.random.default_rng(2).integers(2, 14, size=len(prompts)).tolist()


def conversation_of(policy: HuggingFacePolicy, prompt: Prompt) -> list[dict[str, Any]]:
    """As Hugging Face's own documentation has it."""
    if policy.encoder.template.facts.content == "string":
        return [{"role": message.role, "content": message.text} for message in prompt.messages]
    return [
        {
            "role": message.role,
            "content": [
                *([] if message.image is None else [{"type": "image", "image": message.image}]),
                {"type": "text", "text": message.text},
            ],
        }
        for message in prompt.messages
    ]


@torch.inference_mode()
def generate(
    policy: HuggingFacePolicy, conversation: list[dict[str, Any]], limit: int
) -> tuple[int, ...]:
    """What Hugging Face makes of the conversation, from its own encoding of it."""
    model: Any = policy.module.model
    inputs: Any = policy.processor.apply_chat_template(
        [conversation],
        tokenize=True,
        add_generation_prompt=True,
        return_dict=True,
        return_tensors="pt",
    )
    placeholders = [
        getattr(model.config, name, None) for name in ("image_token_id", "video_token_id")
    ]
    ids = model.generate(
        **inputs,
        max_new_tokens=limit,
        do_sample=False,
        pad_token_id=0,
        suppress_tokens=[i for i in placeholders if i is not None] or None,
    )
    return tuple(ids[0, inputs["input_ids"].shape[1] :].tolist())


def answer(
    policy: HuggingFacePolicy,
    prompts: Sequence[Prompt],
    limits: Sequence[int],
    *,
    temperature: float,
) -> dict[int, GenerationResult]:
    """Answers by position in `prompts`."""
    for key, (prompt, limit) in enumerate(zip(prompts, limits, strict=True)):
        policy.submit(GenerationRequest(key, prompt, 1000 + key, limit, temperature))
    results: dict[int, GenerationResult] = {}
    while len(results) < len(prompts):
        results |= {result.key: result for result in policy.advance()}
    return results


class Scored(NamedTuple):
    logprobs: list[float]
    value: float


def score(
    policy: HuggingFacePolicy,
    examples: Sequence[Example],
    batches: Sequence[Rows] | None = None,
    *,
    temperature: float = 1.0,
) -> list[Scored]:
    """Each example's numbers, whatever the batches; gradients of their sum accumulate.

    By default every example is a batch of its own.
    """
    policy.module.eval()
    policy.module.zero_grad()
    scored = [Scored([], 0.0)] * len(examples)
    for rows in batches or [[[index]] for index in range(len(examples))]:
        batch = build_batch([[examples[i] for i in row] for row in rows], policy.encoder)
        scores = policy.module(batch, temperature=temperature)
        for position, index in enumerate(i for row in rows for i in row):
            logprobs_T = scores.logprobs_BT[position][batch.mask_BT[position]]
            scored[index] = Scored(logprobs_T.tolist(), scores.values_B[position].item())
        (scores.logprobs_BT.sum() + scores.values_B.sum()).backward()
    return scored
