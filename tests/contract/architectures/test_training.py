"""The real training loops on every architecture, from the folder that a user would name."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file

from forethought.algorithms.ppo.train import train_ppo
from forethought.algorithms.sft.config import SFTConfig
from forethought.algorithms.sft.train import train_sft
from forethought.configs.parts import ComputeConfig, LoraConfig
from forethought.models.loading import load_pretrained
from forethought.rollouts.store import read_shards
from forethought.runs.checkpoints import model_source
from tests.contract.architectures.builders import Checkpoint
from tests.contract.architectures.conftest import ReadCheckpoint
from tests.contract.architectures.runs import OPTIMIZER, environment_of, lora_of, metrics_of, ppo


def moved_weights(checkpoint: Checkpoint, run: Path) -> set[str]:
    """Names of the model's parameters that differ from the checkpoint's, or are new."""
    before = dict(load_pretrained(checkpoint.folder).model.named_parameters())
    after = load_pretrained(model_source(str(run))).model.named_parameters()
    return {
        name
        for name, parameter in after
        if name.replace(".base_layer", "") not in before
        or not parameter.equal(before[name.replace(".base_layer", "")])
    }


def assert_on_policy(metrics: dict[str, float]) -> None:
    """What was sampled is what is scored, when judging and when improving."""
    assert metrics["max_ratio_error"] < 1e-4
    assert metrics["approximate_kl"] < 1e-8  # of the first update: the policy against itself
    assert metrics["clip_fraction"] == 0
    assert metrics["gradient_norm"] > 0


@pytest.mark.parametrize("ratio", ["step", "token"])
def test_one_update_of_ppo(checkpoint: Checkpoint, tmp_path: Path, ratio: str) -> None:
    run = train_ppo(ppo(checkpoint, tmp_path, ratio=ratio), existing="overwrite")
    (metrics,) = metrics_of(run)
    assert_on_policy(metrics)
    moved = moved_weights(checkpoint, run)
    assert any("layers.1." in name or "h.1." in name for name in moved)  # the decoder's
    assert any("visi" in name or "visual" in name for name in moved) == checkpoint.sees
    head = load_file(Path(model_source(str(run))) / "value_head.safetensors")
    assert head["layers.4.weight"].abs().max() > 0  # 0 in a new critic


def test_while_the_critic_warms_up_the_model_stays(
    checkpoint_of: ReadCheckpoint, tmp_path: Path
) -> None:
    checkpoint = checkpoint_of("llava")
    config = ppo(
        checkpoint,
        tmp_path,
        iterations=2,
        critic_warmup=1,
        critic_gradient="model",
        entropy_coefficient=0.01,
        kl_coefficient=0.1,
        epochs=2,
    )
    run = train_ppo(config, existing="overwrite")
    step_1, step_2 = (run / f"checkpoints/step_{step}/model" for step in (1, 2))
    start = load_pretrained(checkpoint.folder).model.state_dict()
    warmed, trained = (load_pretrained(str(step)).model.state_dict() for step in (step_1, step_2))
    assert all(tensor.equal(start[name]) for name, tensor in warmed.items())
    assert not all(tensor.equal(start[name]) for name, tensor in trained.items())
    head = load_file(step_1 / "value_head.safetensors")
    assert head["layers.4.weight"].abs().max() > 0


@pytest.mark.parametrize("advantage", ["rloo", "grpo", "dr_grpo", "reinforce_plus_plus", "gigpo"])
def test_one_update_without_a_critic(
    checkpoint_of: ReadCheckpoint, tmp_path: Path, advantage: str
) -> None:
    """Whole episodes alone, each seed as often as a group is large; nothing said of a critic."""
    config = ppo(checkpoint_of("llava"), tmp_path, advantage=advantage, group_size=2)
    run = train_ppo(config, existing="overwrite")
    (metrics,) = metrics_of(run)
    assert_on_policy(metrics)
    assert not {"value_loss", "value_clip_fraction", "explained_variance"} & metrics.keys()
    assert not (Path(model_source(str(run))) / "value_head.safetensors").exists()
    trajectories = list(read_shards(run / "trajectories"))
    assert all(t.is_finished and t.first_step == 0 for t in trajectories)
    assert set(Counter(t.seed for t in trajectories).values()) == {2}
    assert sum(len(t.steps) for t in trajectories) >= config.rollout.steps_per_iteration


def test_recomputed_activations_change_nothing(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """Not the dropout that GPT-2's configuration has by default, either."""
    kept = train_ppo(ppo(checkpoint, tmp_path / "kept"), existing="overwrite")
    recomputed = train_ppo(
        ppo(checkpoint, tmp_path / "recomputed", compute={"gradient_checkpointing": True}),
        existing="overwrite",
    )
    (expected,), (metrics,) = metrics_of(kept), metrics_of(recomputed)
    assert_on_policy(metrics)
    assert metrics == pytest.approx(expected, rel=1e-4, abs=1e-6, nan_ok=True)


def test_ppo_with_adapters(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """Two iterations, the second from adapters that change something: their dropout would
    show in the ratio. The adapters move, and nothing else does."""
    config = ppo(
        checkpoint,
        tmp_path,
        iterations=2,
        lora=lora_of(checkpoint),
        compute={"gradient_checkpointing": True},
    )
    run = train_ppo(config, existing="overwrite")
    for metrics in metrics_of(run):
        assert_on_policy(metrics)
    moved = moved_weights(checkpoint, run)
    assert moved
    assert all(".lora_" in name for name in moved)


def test_a_stopped_run_with_adapters_goes_on(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """The checkpoint holds the adapters and names the model under them; the run that was
    stopped equals the one that was not."""
    whole = train_ppo(
        ppo(checkpoint, tmp_path / "whole", iterations=2, lora=lora_of(checkpoint)),
        existing="overwrite",
    )
    stopped = tmp_path / "stopped"
    train_ppo(ppo(checkpoint, stopped, lora=lora_of(checkpoint)), existing="overwrite")
    goes_on = ppo(checkpoint, stopped, iterations=2, lora=lora_of(checkpoint))
    train_ppo(goes_on, existing="resume")
    assert metrics_of(stopped) == metrics_of(whole)
    assert adapters_in(stopped) == adapters_in(whole)


def adapters_in(run: Path) -> dict[str, list[float]]:
    tensors = load_file(Path(model_source(str(run))) / "adapter_model.safetensors")
    return {name: tensor.flatten().tolist() for name, tensor in tensors.items()}


def sft(checkpoint: Checkpoint, output: Path, *, epochs: int, lora: LoraConfig) -> SFTConfig:
    """An epoch is one update, on the same 16 responses every time."""
    changes_pretrained = checkpoint.name == "smollm2" and not lora.components
    optimizer = replace(OPTIMIZER, learning_rate=3e-5) if changes_pretrained else OPTIMIZER
    return SFTConfig(
        model=checkpoint.folder,
        output=str(output),
        expert_steps=16,
        batch_size=16,
        epochs=epochs,
        checkpoint_every=1,
        environment=environment_of(checkpoint),
        lora=lora,
        optimizer=optimizer,
        compute=ComputeConfig(threads=1, gradient_checkpointing=bool(lora.components)),
    )


@pytest.mark.parametrize("with_adapters", [False, True], ids=["whole", "adapters"])
def test_sft(checkpoint: Checkpoint, tmp_path: Path, with_adapters: bool) -> None:
    lora = lora_of(checkpoint) if with_adapters else LoraConfig()
    run = train_sft(sft(checkpoint, tmp_path, epochs=4, lora=lora), existing="overwrite")
    losses = [metrics["loss"] for metrics in metrics_of(run)]
    assert losses[-1] < losses[0]
    moved = moved_weights(checkpoint, run)
    assert moved
    assert all(".lora_" in name for name in moved) == with_adapters


def test_dropout_goes_on_where_it_stood(checkpoint_of: ReadCheckpoint, tmp_path: Path) -> None:
    """GPT-2 and the adapters both have it."""
    checkpoint = checkpoint_of("gpt2")
    lora = lora_of(checkpoint)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    train_sft(sft(checkpoint, whole, epochs=3, lora=lora), existing="overwrite")
    train_sft(sft(checkpoint, stopped, epochs=1, lora=lora), existing="overwrite")
    train_sft(sft(checkpoint, stopped, epochs=3, lora=lora), existing="resume")
    assert metrics_of(stopped) == metrics_of(whole)
    assert adapters_in(stopped) == adapters_in(whole)


@pytest.mark.parametrize("with_adapters", [False, True], ids=["whole", "adapters"])
def test_ppo_in_bf16(checkpoint: Checkpoint, tmp_path: Path, with_adapters: bool) -> None:
    """Sampling and scoring round differently: the mismatch is logged, and made good."""
    config = ppo(
        checkpoint,
        tmp_path,
        lora=lora_of(checkpoint) if with_adapters else LoraConfig(),
        compute={"precision": "bf16"},
    )
    (metrics,) = metrics_of(train_ppo(config, existing="overwrite"))
    assert 0 < metrics["max_ratio_error"] < 1
    assert metrics["approximate_kl"] < 1e-8
    moved = moved_weights(checkpoint, tmp_path)
    assert moved
