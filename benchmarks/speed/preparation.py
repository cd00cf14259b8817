"""What benchmarks do before they measure: one thread, and a model that has learned to respond."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import torch

from forethought.algorithms.sft.config import SFTConfig
from forethought.algorithms.sft.train import train_sft
from forethought.configs.parts import ComputeConfig, EnvironmentConfig, OptimizerConfig


@contextmanager
def one_thread() -> Generator[None]:
    """PyTorch computes with one thread inside, and with as many as before afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def train_briefly(environment: EnvironmentConfig, output: Path, updates: int) -> Path:
    """The run folder of the tiny model after updates on one batch of expert steps: without them
    every response is as long as it may be."""
    config = SFTConfig(
        output=str(output),
        expert_steps=32,
        epochs=updates,  # of one batch
        batch_size=32,
        environment=environment,
        optimizer=OptimizerConfig(learning_rate=2e-3, schedule="constant", warmup_steps=20),
        compute=ComputeConfig(threads=1),
    )
    return train_sft(config, existing="refuse")
