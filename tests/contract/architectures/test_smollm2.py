"""The real checkpoint: what its publisher says of it, and a step of preference learning."""

from pathlib import Path

import pytest

from forethought.algorithms.dpo.config import DPOConfig
from forethought.algorithms.dpo.train import train_dpo
from forethought.algorithms.sft.config import SFTConfig
from forethought.algorithms.sft.train import train_sft
from forethought.configs.parts import (
    ComputeConfig,
    EnvironmentConfig,
    OptimizerConfig,
    RolloutConfig,
    SamplingConfig,
)
from forethought.generation.huggingface import load_policy
from forethought.models.loading import load_outline, load_pretrained
from forethought.models.model_files import NAME, converted_folder
from forethought.runs.checkpoints import model_source
from forethought.types import Message
from tests.contract.architectures.conftest import ReadCheckpoint
from tests.contract.architectures.helpers import answer
from tests.contract.architectures.runs import environment_of, lora_of, metrics_of

pytestmark = pytest.mark.slow

ROLLOUT = RolloutConfig(
    num_envs=32,
    steps_per_iteration=32,
    sampling=SamplingConfig(temperature=1.0, max_new_tokens=32),
    on_invalid="penalize",
)


def test_digits_are_tokens_of_their_own(checkpoint_of: ReadCheckpoint) -> None:
    """As the tokenizer's splitting is called in the file, "smollm": \\p{N} before words."""
    loaded = load_outline(checkpoint_of(NAME).folder)
    assert loaded.processor.tokenize("at 1234  5") == [  # pyright: ignore[reportAttributeAccessIssue]
        *("at", "Ġ", "1", "2", "3", "4", "ĠĠ", "5")
    ]
    assert sum(p.numel() for p in loaded.model.parameters()) == 134_515_008


def test_a_question_is_answered_and_the_turn_ends(checkpoint_of: ReadCheckpoint) -> None:
    """Wrong weights, a wrong template or wrong positions would not say it."""
    policy = load_policy(checkpoint_of(NAME).folder, slots=1)
    prompt = policy.prompt([Message("user", "What is the capital of France?")])
    (result,) = answer(policy, [prompt], [24], temperature=0.0).values()
    assert "Paris" in result.completion.text
    assert result.completion.finish_reason == "stop"


def test_adapters_name_the_model_not_a_folder_of_the_cache(
    checkpoint_of: ReadCheckpoint, tmp_path: Path
) -> None:
    from tests.contract.architectures.test_lora import load_adapted

    load_adapted(checkpoint_of(NAME), "language_model").save(tmp_path)
    settings = (tmp_path / "adapter_config.json").read_text()
    assert '"base_model_name_or_path": "smollm2"' in settings
    assert str(converted_folder()) not in settings


def test_an_update_of_dpo(checkpoint_of: ReadCheckpoint, tmp_path: Path) -> None:
    """After a few updates of SFT on choices at random, without which no response is valid: there
    are pairs then, and the adapters learn from them."""
    checkpoint = checkpoint_of(NAME)
    optimizer = OptimizerConfig(learning_rate=2e-3, schedule="constant")
    spoken = train_sft(
        SFTConfig(
            model=checkpoint.folder,
            output=str(tmp_path / "sft"),
            environment=EnvironmentConfig(id="Bandit", options=("expert=random_choice",)),
            expert_steps=64,
            batch_size=8,
            lora=lora_of(checkpoint),
            optimizer=optimizer,
            compute=ComputeConfig(threads=1),
        )
    )
    before = load_pretrained(model_source(str(spoken))).model.state_dict()
    config = DPOConfig(
        model=str(spoken),
        output=str(tmp_path / "dpo"),
        environment=environment_of(checkpoint),
        total_steps=32,
        pairing="matched",
        pair_reward="reward",
        pairs_per_state=8,
        group_size=8,
        epochs=1,
        batch_size=8,
        lora=lora_of(checkpoint),
        rollout=ROLLOUT,
        optimizer=optimizer,
        compute=ComputeConfig(threads=1),
    )
    run = train_dpo(config)
    (metrics,) = metrics_of(run)
    assert metrics["pairs"] > 0
    assert metrics["gradient_norm"] > 0
    after = load_pretrained(model_source(str(run))).model.state_dict()
    moved = {name for name, tensor in after.items() if not tensor.equal(before[name])}
    assert moved
    assert all(".lora_" in name for name in moved)
