"""What is learned from waits in memory with its images packed, and comes out as it went in."""

import numpy as np
import pytest
import torch

from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.batching import Example, build_batch
from forethought.models.tiny import make_tiny
from forethought.offline.rows import pack
from forethought.rollouts.shard_files import ImageDecoder, ImageEncoder
from forethought.types import Image, Message
from tests.unit.algorithms.conftest import SMALL


@pytest.fixture(scope="module")
def policy() -> HuggingFacePolicy:
    return HuggingFacePolicy(make_tiny(["one two up ?"], seed=0, size=SMALL), slots=1)


def noise(seed: int) -> Image:
    return np.random.default_rng(seed).integers(0, 256, (64, 64, 3), dtype=np.uint8)


def test_a_packed_example_is_laid_out_as_it_was(policy: HuggingFacePolicy) -> None:
    """Two images, in their order, and the words between them."""
    messages = [Message("user", "one", noise(1)), Message("assistant", "up")]
    prompt = policy.prompt([*messages, Message("user", "two", noise(2))])
    example = Example(prompt, (5, 6, 7))
    packed = pack(example, ImageEncoder())
    assert packed.length == example.length
    back = packed.unpack(ImageDecoder())
    assert back.prompt.key == example.prompt.key
    one, other = (build_batch([[each]], policy.encoder) for each in (example, back))
    assert torch.equal(one.input_ids_RL, other.input_ids_RL)
    assert torch.equal(one.targets_BT, other.targets_BT)
    assert one.images.keys() == other.images.keys() != set()
    assert all(torch.equal(one.images[name], other.images[name]) for name in one.images)


def test_equal_images_are_kept_once(policy: HuggingFacePolicy) -> None:
    png_of = ImageEncoder()
    prompts = [policy.prompt([Message("user", "?", noise(seed))]) for seed in (1, 1, 2)]
    first, same, other = (pack(Example(prompt, (5,)), png_of).pngs[0] for prompt in prompts)
    assert first is same
    assert first != other
