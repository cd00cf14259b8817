"""Offline ArCHer trains, is taken up again and acts with every architecture, with adapters, too."""

import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from accelerate.state import AcceleratorState

from forethought.config_archer import ArcherConfig
from forethought.config_parts import ComputeConfig, LoraConfig, OptimizerConfig, PromptConfig
from forethought.evaluation.evaluate import EvaluationSettings, play_policy
from forethought.policies.huggingface import load_policy
from forethought.rollouts.scripted import play, random_answer
from forethought.rollouts.store import write_shard
from forethought.rollouts.world import open_world
from forethought.runs.metrics import read_metrics
from forethought.training.archer import train_archer
from tests.contract.architectures.builders import Checkpoint
from tests.contract.architectures.test_training import lora_of, world_of

PROMPT = PromptConfig(format="action_only")


@pytest.fixture(autouse=True)
def fresh_accelerate() -> Iterator[None]:
    """Accelerate keeps the first precision of a process."""
    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.mark.parametrize("has_adapters", [False, True], ids=["whole", "lora"])
def test_all_phases_and_acting(checkpoint: Checkpoint, tmp_path: Path, has_adapters: bool) -> None:
    world = open_world(world_of(checkpoint), PROMPT, default_image_size=None)
    episodes = play(world.id, world.factory(), world.prompter, random_answer(0), range(100))
    write_shard(tmp_path / "data.parquet", list(islice(episodes, 6)))
    config = ArcherConfig(
        model=checkpoint.folder,
        data=str(tmp_path / "data.parquet"),
        output=str(tmp_path / "run"),
        batch_size=3,
        checkpoint_every=1,
        environment=world_of(checkpoint),
        prompt=PROMPT,
        lora=lora_of(checkpoint) if has_adapters else LoraConfig(),
        optimizer=OptimizerConfig(learning_rate=1e-3, schedule="constant"),
        compute=ComputeConfig(threads=1),
    )
    run = train_archer(config)
    losses = read_metrics(run / "metrics.jsonl").column("actor_loss").values
    assert len(losses) == 2
    shutil.rmtree(run / "checkpoints/step_6")
    train_archer(config, existing="resume")
    again = read_metrics(run / "metrics.jsonl").column("actor_loss").values
    assert again.tolist() == losses.tolist()
    policy = load_policy(str(run / "checkpoints/step_6/model"), slots=2)
    settings = EvaluationSettings(episodes=2, max_new_tokens=4, slots=2, temperature=1.0)
    played = play_policy(policy, world, settings)
    assert all(episode.failure is None for episode in played)
