"""Collection of episodes as Parquet files; the same call again resumes an interrupted one."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from forethought.agents.policies import (
    Agent,
    Progress,
    ProgressBar,
    is_scripted,
    model_agent,
    no_progress,
    scripted_agent,
)
from forethought.agents.sources import find_source
from forethought.chat.policy import PREFIX
from forethought.configs.acting import ApiConfig
from forethought.configs.parts import (
    EnvironmentConfig,
    Inline,
    PromptConfig,
    SamplingConfig,
    require,
)
from forethought.durable import require_seal, sealed, write_text
from forethought.errors import ConfigError, StorageError
from forethought.evaluation.statistics import CollectionStats
from forethought.rollouts.store import read_shard, write_shard
from forethought.types import Trajectory

_RECORD = "collection.json"
"""Says what the shards beside it were collected with."""


@dataclass(frozen=True)
class CollectionSettings:
    """Who plays, where, how often, and where it is kept."""

    output: str
    """Where the shards go."""

    policy: str = "expert"
    """`expert`; `random`; `data`, the environment's suboptimal behavior policy, where it has one
    (`data:0.5` at another skill); or a model: a run folder (its newest checkpoint), a checkpoint, a
    folder of `save_pretrained`, a hub id, or `api:NAME`, as for `evaluate`."""

    episodes: int = 500
    """Number of episodes, including those that are stored already."""

    shard: int = 500
    """Episodes per file. An interruption loses at most one file."""

    seed: int = 0
    """Seed of episodes and sampling. The episodes are never held-out ones."""

    sampling: Annotated[SamplingConfig, Inline()] = field(default_factory=SamplingConfig)

    num_envs: int = 64
    """Episodes that a model plays at the same time."""

    threads: int | None = None
    """CPU threads of PyTorch; by default OMP_NUM_THREADS, else one fewer than there are cores."""

    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    prompt: PromptConfig = field(default_factory=PromptConfig)
    api: ApiConfig = field(default_factory=ApiConfig)

    def __post_init__(self) -> None:
        for name in ("episodes", "shard", "num_envs"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        require(0 <= self.seed < 2**31, "seed", self.seed, "0 to 2147483647")
        if is_scripted(self.policy):
            workers = self.environment.workers
            require(workers == 0, "environment.workers", workers, f"0 with policy {self.policy}")


def collect_episodes(
    settings: CollectionSettings, *, progress: Progress = no_progress
) -> CollectionStats:
    """Plays what is not stored yet, and counts everything.

    Raises:
        ForethoughtError: a model, environment or option that does not exist; the folder holds
            another collection, or cannot be written.
    """
    agent = _agent(settings)
    try:
        folder = _claim(Path(settings.output), _record(settings, agent))
        with progress(settings.episodes) as bar:
            return _gather(agent, folder, settings, bar)
    finally:
        agent.close()


def _agent(settings: CollectionSettings) -> Agent:
    if is_scripted(settings.policy):
        return scripted_agent(
            settings.policy, settings.environment, settings.prompt, seed=settings.seed
        )
    return model_agent(
        find_source(settings.policy),
        settings.environment,
        settings.prompt,
        seed=settings.seed,
        sampling=settings.sampling,
        slots=min(settings.num_envs, settings.shard, settings.episodes),
        threads=settings.threads,
        api=settings.api,
    )


def _record(settings: CollectionSettings, agent: Agent) -> dict[str, Any]:
    """All settings that an episode depends on."""
    content = asdict(settings)
    for name in ("output", "episodes", "threads", "num_envs"):
        del content[name]
    del content["environment"]["workers"]
    api = content.pop("api")
    if settings.policy.startswith(PREFIX):
        content["api"] = {name: api[name] for name in ("style", "examples")}
    sampling = content.pop("sampling")
    if not is_scripted(settings.policy):
        if not sampling["constrain_actions"]:
            del sampling["constrain_actions"]  # Collections from before it was offered go on.
        content |= sampling
    return {**content, "policy": agent.name}


def _claim(folder: Path, record: dict[str, Any]) -> Path:
    """Makes the folder, or takes up one of the same collection.

    Raises:
        ConfigError: it holds another collection, or something else.
        StorageError: it cannot be written.
    """
    path = folder / _RECORD
    text = sealed(json.dumps(record))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            foreign = next((file.name for file in sorted(folder.glob("*.parquet"))), None)
            if foreign is not None:
                raise ConfigError(
                    f"{folder}: holds {foreign}, which is not of this collection — "
                    "name another folder"
                )
            write_text(path, text)
        stored = path.read_text(encoding="utf-8")
        found = json.loads(stored)
        require_seal(stored, may_lack=True)
    except OSError as error:
        raise StorageError(f"{folder}: cannot be written: {error.strerror}") from error
    except ValueError as error:
        raise StorageError(f"{path}: is damaged — name another folder") from error
    except StorageError as error:
        raise StorageError(f"{path}: {error}") from None
    for name, value in json.loads(json.dumps(record)).items():  # a tuple is stored as a list
        if found.get(name) != value:
            raise ConfigError(
                f"{folder}: holds another collection, with {name} {found.get(name)!r} instead of "
                f"{value!r} — name another folder"
            )
    return folder


def _gather(
    agent: Agent, folder: Path, settings: CollectionSettings, bar: ProgressBar
) -> CollectionStats:
    stats = CollectionStats()
    for first in range(0, settings.episodes, settings.shard):
        count = min(settings.shard, settings.episodes - first)
        path = folder / f"episodes_{first:07d}.parquet"
        trajectories = _stored(path, count)
        if trajectories is None:
            trajectories = agent.play(range(first, first + count), bar.update)
            write_shard(path, trajectories)
        else:
            bar.update(count)
        stats.add(trajectories)
    return stats


def _stored(path: Path, count: int) -> list[Trajectory] | None:
    """The first `count` episodes of a shard that is whole; None where there is none."""
    if not path.exists():
        return None
    try:
        trajectories = read_shard(path)
    except StorageError:
        return None
    return trajectories[:count] if len(trajectories) >= count else None
