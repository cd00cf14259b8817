"""Logits in chunks are, on every architecture, those that are made at once."""

import pytest
import torch

from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.batching import Example, plan_rows
from tests.contract.architectures.helpers import make_prompts, score
from tests.contract.architectures.test_scoring import gradients_of


def test_chunks_equal_the_whole_in_value_and_gradient(policy: HuggingFacePolicy) -> None:
    examples = [
        Example(prompt, tuple(range(10 + n, 18 + 2 * n)))
        for n, prompt in enumerate(make_prompts(policy, 6))
        for _ in range(2)
    ]
    batches = plan_rows(examples, max_tokens=800)
    at_once = score(policy, examples, batches, temperature=0.7)
    expected = gradients_of(policy)
    policy.module.largest_projection = 5 * policy.module.vocabulary
    chunked = score(policy, examples, batches, temperature=0.7)
    gradients = gradients_of(policy)
    for (logprobs, value), (expected_logprobs, expected_value) in zip(
        chunked, at_once, strict=True
    ):
        # Log-probs of a model as large as SmolLM2 are tens of nats: fp32 has seven digits.
        assert logprobs == pytest.approx(expected_logprobs, abs=1e-5, rel=5e-6)
        assert value == pytest.approx(expected_value, abs=1e-5)
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        scale = float(expected[name].abs().max())
        torch.testing.assert_close(gradient, expected[name], rtol=0, atol=1e-5 * max(1.0, scale))
