"""The decode loop on every architecture: against `generate`, and against a fresh forward pass."""

from dataclasses import replace

import numpy as np
import pytest

from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.batching import Example
from forethought.types import Prompt
from tests.contract.architectures.helpers import (
    answer,
    conversation_of,
    generate,
    limits_for,
    make_prompts,
    score,
)


def test_greedy_equals_generate(policy: HuggingFacePolicy) -> None:
    """20 prompts of unequal length, with images of unequal size where the model sees."""
    prompts = make_prompts(policy, 20)
    limits = limits_for(prompts)
    results = answer(policy, prompts, limits, temperature=0.0)
    for key, (prompt, limit) in enumerate(zip(prompts, limits, strict=True)):
        expected = generate(policy, conversation_of(policy, prompt), limit)
        assert results[key].completion.token_ids == expected
    # The model must not make this easy by saying the same to everyone.
    assert len({result.completion.token_ids[:2] for result in results.values()}) >= 10


def test_sampled_logprobs_and_values_equal_a_fresh_forward_pass(policy: HuggingFacePolicy) -> None:
    prompts = make_prompts(policy, 20)
    results = answer(policy, prompts, limits_for(prompts), temperature=0.7)
    examples = [Example(p, results[key].completion.token_ids) for key, p in enumerate(prompts)]
    scored = score(policy, examples, temperature=0.7)
    for key, (logprobs, value) in enumerate(scored):
        assert logprobs == pytest.approx(results[key].completion.logprobs, abs=1e-4)
        assert value == pytest.approx(results[key].value, abs=1e-4)
    assert len({round(value, 3) for _, value in scored}) > 10


def test_the_next_turn_of_a_conversation_equals_a_fresh_forward_pass(
    policy: HuggingFacePolicy,
) -> None:
    """Its beginning is in the cache: the last prompt, and the completion that was written to it."""
    prompts = [prompt for prompt in make_prompts(policy, 20) if not prompt.images][:4]
    for _ in range(3):
        results = answer(policy, prompts, [3, 5, 2, 6][: len(prompts)], temperature=0.7)
        written = [results[key].completion.token_ids for key in range(len(prompts))]
        examples = [Example(*one) for one in zip(prompts, written, strict=True)]
        for key, (logprobs, value) in enumerate(score(policy, examples, temperature=0.7)):
            assert logprobs == pytest.approx(results[key].completion.logprobs, abs=1e-4)
            assert value == pytest.approx(results[key].value, abs=1e-4)
        prompts = [
            Prompt((), (*p.token_ids, *ids, *p.token_ids[-4:]))
            for p, ids in zip(prompts, written, strict=True)
        ]


def test_images_are_seen(seeing_policy: HuggingFacePolicy) -> None:
    """Equal words with other pixels are samples otherwise, by sampling and scoring alike."""
    prompts = [prompt for prompt in make_prompts(seeing_policy, 10) if prompt.images]
    negatives = [
        seeing_policy.prompt(
            [m if m.image is None else replace(m, image=255 - m.image) for m in prompt.messages]
        )
        for prompt in prompts
    ]
    everyone = [*prompts, *negatives]
    results = answer(seeing_policy, everyone, [0] * len(everyone), temperature=1.0)
    scored = score(seeing_policy, [Example(prompt, ()) for prompt in everyone])
    for values in (
        np.array([results[key].value for key in range(len(everyone))]),
        np.array([value for _, value in scored]),
    ):
        assert (np.abs(values[: len(prompts)] - values[len(prompts) :]) > 1e-3).all()
