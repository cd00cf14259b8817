"""Completions of one prompt that share a row are scored as if each had one of its own."""

import numpy as np
import pytest
import torch

from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.batching import Example, plan_rows
from forethought.types import Prompt
from tests.contract.architectures.helpers import make_prompts, score


def sample_examples(prompts: list[Prompt]) -> list[Example]:
    """One to four completions a prompt, in disorder."""
    rng = np.random.default_rng(3)
    examples = [
        Example(prompt, tuple(rng.integers(10, 250, size=int(rng.integers(1, 12))).tolist()))
        for prompt in prompts
        for _ in range(int(rng.integers(1, 5)))
    ]
    return [examples[index] for index in rng.permutation(len(examples))]


def gradients_of(policy: HuggingFacePolicy) -> dict[str, torch.Tensor]:
    return {
        name: parameter.grad.clone()
        for name, parameter in policy.module.named_parameters()
        if parameter.grad is not None
    }


def test_shared_rows_equal_single_rows_in_value_and_gradient(policy: HuggingFacePolicy) -> None:
    examples = sample_examples(make_prompts(policy, 10))
    shared = plan_rows(examples, max_tokens=800)
    assert any(len(rows) > 1 and any(len(row) > 1 for row in rows) for rows in shared)
    together = score(policy, examples, shared)
    gradients = gradients_of(policy)
    apart = score(policy, examples)
    expected = gradients_of(policy)
    for (logprobs, value), (expected_logprobs, expected_value) in zip(together, apart, strict=True):
        assert logprobs == pytest.approx(expected_logprobs, abs=1e-4)
        assert value == pytest.approx(expected_value, abs=1e-4)
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        scale = expected[name].abs().max()
        assert (gradient - expected[name]).abs().max() <= 1e-3 * scale + 1e-4, name
