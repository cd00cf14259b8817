"""bf16 on the CPU: the same gradients, and PyTorch's settings as they were."""

from contextlib import suppress
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.backends import cuda

from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.losses.cross_entropy import token_mean_cross_entropy
from forethought.models.batching import Example, build_batch
from forethought.training.processes import autocast
from forethought.types import Message


@pytest.fixture(scope="module")
def policy(small_model: Path) -> HuggingFacePolicy:
    return load_policy(str(small_model), slots=2)


def settings() -> tuple[bool, ...]:
    return (
        cuda.flash_sdp_enabled(),
        cuda.math_sdp_enabled(),
        cuda.fp16_bf16_reduction_math_sdp_allowed(),
    )


def gradient(policy: HuggingFacePolicy, precision: str, *, recomputes: bool = False) -> Tensor:
    """Of the loss of two answers that share a prompt, and one that does not."""
    asked = [policy.prompt([Message("user", text)]) for text in ("row 0, column 1", "row 1")]
    answers = [policy.encoder.tokenize_response(f'{{\n"action": "{m}"\n}}') for m in ("up", "left")]
    rows = [[Example(asked[0], answer) for answer in answers], [Example(asked[1], answers[0])]]
    batch = build_batch(rows, policy.encoder)
    policy.module.zero_grad()
    with autocast(precision, "cpu", recomputes=recomputes):
        scores = policy.module.train()(batch)
    token_mean_cross_entropy(logprobs_BT=scores.logprobs_BT, mask_BT=batch.mask_BT).loss.backward()
    grads = [p.grad.flatten() for p in policy.module.parameters() if p.grad is not None]
    return torch.cat(grads)


def test_the_gradient_of_full_precision(policy: HuggingFacePolicy) -> None:
    exact, half = gradient(policy, "fp32"), gradient(policy, "bf16")
    assert torch.cosine_similarity(exact, half, dim=0) > 0.999
    assert half.norm() == pytest.approx(exact.norm().item(), rel=0.02)
    assert not torch.equal(exact, half)


def test_what_is_recomputed_is_computed_alike(small_model: Path) -> None:
    policy = load_policy(str(small_model), slots=2)
    exact = gradient(policy, "fp32")
    policy.module.model.activation_checkpointing_enable({"use_reentrant": False})
    half = gradient(policy, "bf16", recomputes=True)
    assert torch.cosine_similarity(exact, half, dim=0) > 0.999


@pytest.mark.parametrize(
    ("precision", "recomputes", "within"),
    [("bf16", False, (False, True, True)), ("bf16", True, None), ("fp32", False, None)],
)
def test_settings_are_put_back(
    precision: str, recomputes: bool, within: tuple[bool, ...] | None
) -> None:
    before = settings()
    found: list[tuple[bool, ...]] = []
    with suppress(KeyError), autocast(precision, "cpu", recomputes=recomputes):
        found.append(settings())
        raise KeyError
    assert found == [within or before]
    assert settings() == before
