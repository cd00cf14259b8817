"""Every test below gets each architecture in turn, loaded from disk as a user loads it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.state import AcceleratorState
from transformers.utils import logging

from forethought.configs.parts import ComputeConfig, OptimizerConfig, PromptConfig
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.model_files import INSTALL, missing_packages
from forethought.models.model_files import NAME as SMOLLM2
from forethought.rollouts.scripted import play, random_response
from forethought.rollouts.store import write_shard
from forethought.rollouts.task import Task, open_task
from tests.contract.architectures.builders import ARCHITECTURES, Checkpoint, write_checkpoint
from tests.contract.architectures.helpers import load
from tests.contract.architectures.runs import environment_of

SMOL = Checkpoint(SMOLLM2, SMOLLM2, sees=False, components=("language_model",))
"""Real weights, named as a person names them; every test of the others runs on them, too."""
ACTION_ONLY = PromptConfig(format="action_only")
ReadCheckpoint = Callable[[str], Checkpoint]


@pytest.fixture(autouse=True)
def one_quiet_thread() -> None:
    torch.set_num_threads(1)
    logging.disable_progress_bar()


@pytest.fixture(autouse=True)
def fresh_accelerate() -> Iterator[None]:
    """Accelerate keeps the first precision of a process; each of these runs has its own."""
    forget_precision()
    yield
    forget_precision()


def forget_precision() -> None:
    AcceleratorState._reset_state(reset_partial_state=True)  # pyright: ignore[reportPrivateUsage]


@pytest.fixture(scope="session")
def checkpoint_of(tmp_path_factory: pytest.TempPathFactory) -> ReadCheckpoint:
    """The named architecture's checkpoint, written once; not to be written to."""
    folder = tmp_path_factory.mktemp("checkpoints")
    written: dict[str, Checkpoint] = {}

    def read(name: str) -> Checkpoint:
        if name == SMOLLM2 and missing_packages():
            pytest.skip(f"{SMOLLM2} is not installed: {INSTALL}")
        if name not in written:
            written[name] = SMOL if name == SMOLLM2 else write_checkpoint(name, folder / name)
        return written[name]

    return read


@pytest.fixture(params=[*ARCHITECTURES, pytest.param(SMOLLM2, marks=pytest.mark.slow)])
def checkpoint(request: pytest.FixtureRequest, checkpoint_of: ReadCheckpoint) -> Checkpoint:
    return checkpoint_of(request.param)


@pytest.fixture(params=[name for name, (_, parts) in ARCHITECTURES.items() if len(parts) > 1])
def seeing_checkpoint(request: pytest.FixtureRequest, checkpoint_of: ReadCheckpoint) -> Checkpoint:
    return checkpoint_of(request.param)


@pytest.fixture
def policy(checkpoint: Checkpoint) -> HuggingFacePolicy:
    return load(checkpoint.folder)


@pytest.fixture
def seeing_policy(seeing_checkpoint: Checkpoint) -> HuggingFacePolicy:
    return load(seeing_checkpoint.folder)


@pytest.fixture
def task(checkpoint: Checkpoint) -> Task:
    return open_task(environment_of(checkpoint), ACTION_ONLY, default_image_size=None)


@pytest.fixture
def offline(checkpoint: Checkpoint, task: Task, tmp_path: Path) -> dict[str, Any]:
    """Settings of a run that learns from six random episodes, in two updates a phase."""
    episodes = play(task.id, task.factory(), task.prompter, random_response(0), range(6))
    write_shard(tmp_path / "data.parquet", list(episodes))
    return {
        "model": checkpoint.folder,
        "data": str(tmp_path / "data.parquet"),
        "output": str(tmp_path / "run"),
        "batch_size": 3,
        "checkpoint_every": 1,
        "environment": environment_of(checkpoint),
        "prompt": ACTION_ONLY,
        "optimizer": OptimizerConfig(learning_rate=1e-3, schedule="constant"),
        "compute": ComputeConfig(threads=1),
    }
