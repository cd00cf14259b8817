"""Adapters on the named parts of every architecture: there, nowhere else, and trained."""

from pathlib import Path

import pytest
import torch

from forethought.configs.parts import LoraConfig
from forethought.errors import ConfigError
from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.models.batching import Example
from forethought.models.loading import load_pretrained
from forethought.models.lora import add_lora
from tests.contract.architectures.builders import VISION, Checkpoint, Component
from tests.contract.architectures.conftest import ReadCheckpoint
from tests.contract.architectures.helpers import load, make_prompts, score, with_critic

# Linear layers per part, counted by hand: layers × matrices in each.
DECODER = 2 * 7  # query, key, value, output; gate, up, down
CLIP = 3 * 6  # query, key, value, output; two of the perceptron
EXPECTED: dict[str, dict[Component, int]] = {
    "llava": {"vision_tower": CLIP, "projector": 2, "language_model": DECODER},
    "llava_next": {"vision_tower": CLIP, "projector": 2, "language_model": DECODER},
    # Query, key and value in one; output; gate, up, down.
    "qwen2_5_vl": {"vision_tower": 2 * 5, "projector": 2, "language_model": DECODER},
    # Query, key and value in one; output; two of the perceptron. A second merger feeds the
    # decoder's first layer.
    "qwen3_vl": {"vision_tower": 2 * 4, "projector": 2 * 2, "language_model": DECODER},
    "gpt2": {"language_model": 2 * 4},  # query, key and value in one; output; two
    "llama": {"language_model": DECODER},
    "mistral": {"language_model": DECODER},
    "smollm2": {"language_model": 30 * 7},
}
# Words that occur in the path of every layer of a part, and in no other part's.
MARKS = {
    "llava": ("vision_tower", "projector", "language_model"),
    "llava_next": ("vision_tower", "projector", "language_model"),
    "qwen2_5_vl": ("visual.blocks", "merger", "language_model"),
    "qwen3_vl": ("visual.blocks", "merger", "language_model"),
}
CASES = [
    pytest.param(name, part, marks=[pytest.mark.slow] if name == "smollm2" else [])
    for name, parts in EXPECTED.items()
    for part in parts
]


def load_adapted(checkpoint: Checkpoint, *components: Component) -> HuggingFacePolicy:
    """With adapters that change something, as training makes them."""
    loaded = load_pretrained(checkpoint.folder)
    config = LoraConfig(components=components, rank=4, alpha=8)
    adapter = add_lora(loaded.model, config, seed=0)
    return with_critic(HuggingFacePolicy(loaded._replace(adapter=adapter), slots=4))


def disturb(policy: HuggingFacePolicy) -> None:
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in policy.module.model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.2, generator=generator)


def trained(policy: HuggingFacePolicy) -> set[str]:
    return {name for name, p in policy.module.model.named_parameters() if p.requires_grad}


def scores_of(policy: HuggingFacePolicy) -> tuple[list[list[float]], list[float]]:
    examples = [Example(prompt, (11, 12, 13)) for prompt in make_prompts(policy, 6)]
    scores = policy.score(examples, temperature=1.0)
    assert scores.values_B is not None
    return scores.logprobs_BT.tolist(), scores.values_B.tolist()


@pytest.mark.parametrize(("name", "component"), CASES)
def test_exactly_this_part_is_adapted_and_learns(
    name: str, component: Component, checkpoint_of: ReadCheckpoint
) -> None:
    policy = load_adapted(checkpoint_of(name), component)
    names = trained(policy)
    assert len(names) == 2 * EXPECTED[name][component]  # two matrices each
    assert all(".lora_A." in name or ".lora_B." in name for name in names)
    mark = dict(zip(VISION, MARKS.get(name, ("", "", "")), strict=True))[component]
    assert all(mark in path for path in names)
    critic = policy.module.value_head
    assert critic is not None
    assert all(p.requires_grad for p in critic.parameters())
    disturb(policy)
    score(policy, [Example(prompt, (11, 12, 13)) for prompt in make_prompts(policy, 5)])
    # The last layer of a LLaVA's tower is not read, so nothing there can learn.
    idle = "vision_tower.encoder.layers.2." if name.startswith("llava") else None
    for path, parameter in policy.module.model.named_parameters():
        if path not in names:
            assert parameter.grad is None, path
        elif idle is None or idle not in path:
            assert parameter.grad is not None, path
            assert parameter.grad.abs().max() > 0, path


def test_adapters_change_nothing_at_first(checkpoint: Checkpoint) -> None:
    plain = load(checkpoint.folder)
    adapted = load_adapted(checkpoint, *checkpoint.components)
    assert scores_of(adapted) == scores_of(plain)
    disturb(adapted)
    assert scores_of(adapted) != scores_of(plain)


def test_save_and_load(checkpoint: Checkpoint, tmp_path: Path) -> None:
    policy = load_adapted(checkpoint, *checkpoint.components)
    disturb(policy)
    policy.save(tmp_path)
    assert not list(tmp_path.glob("model*.safetensors"))  # the adapters alone
    loaded = load_policy(str(tmp_path), slots=1)
    assert scores_of(loaded) == scores_of(policy)
    assert trained(loaded) == trained(policy)


@pytest.mark.parametrize("component", ["vision_tower", "projector"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral"])
def test_a_part_that_is_not_there_is_refused(
    name: str, component: Component, checkpoint_of: ReadCheckpoint
) -> None:
    with pytest.raises(ConfigError, match=f"has '{component}', which .* lacks — it has: language"):
        load_adapted(checkpoint_of(name), "language_model", component)
