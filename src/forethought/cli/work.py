"""`forethought work --run RUN`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forethought.configs.file import load_any_config
from forethought.configs.parts import require
from forethought.errors import ConfigError
from forethought.libraries import load_quietly
from forethought.runs.run_folder import RunFolder


@dataclass(frozen=True)
class Work:
    """For which run, and how much at a time."""

    run: Path
    """The run folder of a trainer that was started with --generation.workers; it may start
    later."""

    num_envs: int = 8
    """Episodes played at the same time."""

    patience_s: float = 600.0
    """How long to wait for the run to begin."""

    threads: int | None = 1
    """CPU threads of PyTorch, which has little to do here."""

    def __post_init__(self) -> None:
        require(self.num_envs >= 1, "num_envs", self.num_envs, "1 or more")
        require(self.patience_s > 0, "patience_s", self.patience_s, "above 0")


def work(settings: Work) -> None:
    """Play episodes for a run, on any machine that sees its folder and its engines.

    Any number of workers may come and go: one that dies costs the episodes that it was playing,
    which others then play. It ends when the run does.

    Examples:
      forethought work --run runs/ppo
      forethought work --run /shared/runs/ppo --num-envs 32
    """
    load_quietly(threads=settings.threads)
    from forethought.training.workers import WorkerSettings, await_run
    from forethought.training.workers import work as play

    await_run(settings.run, settings.patience_s)
    config: Any = load_any_config(RunFolder.open(settings.run).config_path)
    generation = getattr(config, "generation", None)
    if generation is None or not generation.workers:
        raise ConfigError(
            f"{settings.run} needs no workers — start its trainer with --generation.workers and "
            "--generation.engine"
        )
    count = play(WorkerSettings(settings.run, settings.num_envs), config)
    print(f"{count} episodes played for {settings.run}")
