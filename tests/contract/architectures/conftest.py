"""Every test below gets each architecture in turn, loaded from disk as a user loads it."""

from collections.abc import Callable

import pytest
import torch
from transformers.utils import logging

from forethought.policies.huggingface import HuggingFacePolicy
from tests.contract.architectures.builders import ARCHITECTURES, Checkpoint, write_checkpoint
from tests.contract.architectures.helpers import load

ReadCheckpoint = Callable[[str], Checkpoint]


@pytest.fixture(autouse=True)
def one_quiet_thread() -> None:
    torch.set_num_threads(1)
    logging.disable_progress_bar()


@pytest.fixture(scope="session")
def checkpoint_of(tmp_path_factory: pytest.TempPathFactory) -> ReadCheckpoint:
    """The named architecture's checkpoint, written once; not to be written to."""
    folder = tmp_path_factory.mktemp("checkpoints")
    written: dict[str, Checkpoint] = {}

    def read(name: str) -> Checkpoint:
        if name not in written:
            written[name] = write_checkpoint(name, folder / name)
        return written[name]

    return read


@pytest.fixture(params=ARCHITECTURES)
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
