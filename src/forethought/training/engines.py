"""Who writes a run's responses: its own policy, or engines elsewhere in its name."""

from collections.abc import Generator
from contextlib import contextmanager

from forethought.chat.remote import RemotePolicy
from forethought.configs.generation import GenerationConfig
from forethought.configs.parts import require
from forethought.generation.contract import Policy
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.generation.published import Publisher
from forethought.rollouts.board import Board
from forethought.training.run import Run


@contextmanager
def acting(policy: HuggingFacePolicy, config: GenerationConfig, run: Run) -> Generator[Policy]:
    """The policy itself; with engines, one whose responses they write.

    New weights are published before the first request that follows an update, so that a training
    loop need not know of it.

    Raises:
        ConfigError: several processes, whose weights would be published over one another.
    """
    if not config.engine:
        yield policy
        return
    require(run.processes == 1, "generation.engine", config.engine, "none with several processes")
    folder = config.folder(run.folder.published_dir)
    publisher = Publisher(policy, folder, keep=config.max_staleness + 1)
    remote = RemotePolicy(
        policy.encoder,
        config,
        published=publisher.current,
        critic=None if policy.module.value_head is None else policy,
        version=lambda: policy.version,
    )
    try:
        yield remote
    finally:
        remote.close()
        if config.workers:
            Board(run.folder.work_dir).close()
