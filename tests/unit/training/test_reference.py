"""The reference policy is the start of the run, whatever the policy learns."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from forethought.configs.parts import LoraConfig
from forethought.errors import CheckpointError
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.batching import Example
from forethought.models.loading import LoadedModel, load_pretrained
from forethought.models.lora import add_lora
from forethought.models.tiny import TinySize, make_tiny
from forethought.training.reference import (
    REFERENCE_FILE,
    Reference,
    load_reference,
    start_reference,
)
from forethought.types import Message

SIZE = TinySize(hidden_size=16, intermediate_size=16, layers=1, heads=2, vision_hidden_size=8)
Make = Callable[[Path], HuggingFacePolicy]
LORA = LoraConfig(components=("language_model",), rank=2, alpha=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model, on which adapters can be put."""
    folder = tmp_path_factory.mktemp("model")
    HuggingFacePolicy(make_tiny(["some words to read"], seed=0, size=SIZE), slots=1).save(folder)
    return folder


def whole(folder: Path) -> HuggingFacePolicy:
    return HuggingFacePolicy(load_pretrained(str(folder)), slots=1)


def adapted(folder: Path) -> HuggingFacePolicy:
    loaded = load_pretrained(str(folder))
    adapter = add_lora(loaded.model, LORA, seed=0)
    return HuggingFacePolicy(LoadedModel(loaded.model, loaded.processor, adapter), slots=1)


def disturb(policy: HuggingFacePolicy, by: float) -> None:
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in policy.module.model.parameters():
            if parameter.requires_grad:
                parameter.add_(by * torch.randn(parameter.shape, generator=generator))


def logprobs(policy: HuggingFacePolicy) -> list[float]:
    prompt = policy.prompt([Message("user", "some words")])
    return policy.score([Example(prompt, (5, 6, 7))], temperature=1.0).logprobs_BT[0].tolist()


def logprobs_of_reference(policy: HuggingFacePolicy, reference: Reference) -> list[float]:
    with reference.in_place():
        return logprobs(policy)


@pytest.mark.parametrize("make", [whole, adapted])
def test_it_stays_where_the_run_began(make: Make, folder: Path) -> None:
    policy = make(folder)
    before = logprobs(policy)
    reference = start_reference(policy)
    assert logprobs_of_reference(policy, reference) == before
    disturb(policy, 0.3)
    after = logprobs(policy)
    assert after != before
    assert logprobs_of_reference(policy, reference) == before
    assert logprobs(policy) == after
    assert all(p.requires_grad for n, p in policy.module.model.named_parameters() if "lora" in n)


def test_fresh_adapters_need_no_copy(folder: Path, tmp_path: Path) -> None:
    reference = start_reference(adapted(folder))
    assert reference.is_adapter_off
    reference.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_adapters_that_have_learned_are_part_of_the_start(folder: Path) -> None:
    """Switching them off would make the model before its imitation the reference."""
    policy = adapted(folder)
    disturb(policy, 0.3)
    before = logprobs(policy)
    reference = start_reference(policy)
    assert not reference.is_adapter_off
    disturb(policy, 0.3)
    assert logprobs_of_reference(policy, reference) == before


def test_refreshed_it_is_the_policy_of_that_moment(folder: Path) -> None:
    policy = adapted(folder)
    reference = start_reference(policy)
    disturb(policy, 0.3)
    moment = logprobs(policy)
    reference.refresh()
    disturb(policy, 0.3)
    assert logprobs_of_reference(policy, reference) == moment


def test_the_weights_come_back_after_an_error(folder: Path) -> None:
    policy = whole(folder)
    reference = start_reference(policy)
    disturb(policy, 0.3)
    after = logprobs(policy)
    with pytest.raises(KeyError), reference.in_place():
        raise KeyError
    assert logprobs(policy) == after


@pytest.mark.parametrize("make", [whole, adapted])
def test_a_resumed_run_has_the_same_one(make: Make, folder: Path, tmp_path: Path) -> None:
    policy = make(folder)
    reference = start_reference(policy)
    before = logprobs(policy)
    disturb(policy, 0.3)
    reference.save(tmp_path)
    assert logprobs_of_reference(policy, load_reference(policy, tmp_path)) == before


def test_a_checkpoint_of_other_weights_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"got no reference\.safetensors"):
        load_reference(whole(folder), tmp_path)
    save_file({"model.strange": torch.zeros(1)}, tmp_path / REFERENCE_FILE)
    with pytest.raises(CheckpointError, match="other weights than this run trains"):
        load_reference(whole(folder), tmp_path)
