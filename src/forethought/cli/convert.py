"""`forethought data convert`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from forethought.cli.flags import Switch
from forethought.cli.progress import progress_bar
from forethought.cli.tables import collection_line
from forethought.configs.parts import require
from forethought.data.folder import write_folder
from forethought.data.from_chat import ChatFormat, read_chat, require_chat
from forethought.data.from_minari import read_minari
from forethought.data.validation import first_problem
from forethought.errors import StorageError
from forethought.evaluation.collection_stats import CollectionStats
from forethought.targets.reward_map import RewardMap
from forethought.types import Trajectory

_MINARI = "minari:"


@dataclass(frozen=True)
class ConvertData:
    """What is converted, and where it goes."""

    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FILE.jsonl|minari:NAME")]
    """Conversations, one JSON object per line; or a data set of Minari's on this machine."""

    output: Annotated[str, tyro.conf.arg(metavar="FOLDER")]
    """Where the shards go; must not be there."""

    environment_id: str | None = None
    """World of the lines that name none."""

    answers: Literal["json", "json_last", "text"] = "json"
    """What an assistant's message is: an answer that ends in `"action": "…"`, as models give it
    here; one of which the last such field counts, whatever follows; or the action itself, all
    of it."""

    reward_range: tuple[float, float] | None = None
    """Lowest and highest return: declared in the folder (reward_map.json) as what becomes 0
    and 1; trajectories with a return outside it are refused."""

    gamma: float = 1.0
    """Discount per step of those returns."""

    shard: int = 500
    """Trajectories per file."""

    json: Switch = False
    """Print the summary as JSON."""

    def __post_init__(self) -> None:
        require(0 <= self.gamma <= 1, "gamma", self.gamma, "0 to 1")
        require(self.shard >= 1, "shard", self.shard, "1 or more")

    @property
    def reward_map(self) -> RewardMap | None:
        """What the folder declares."""
        return None if self.reward_range is None else RewardMap(*self.reward_range)


def convert_data(settings: ConvertData) -> None:
    """Turn others' trajectories into a data set of shards.

    A .jsonl file holds one trajectory per line: `messages` as chat models take them, and
    `rewards`, one for every message of the assistant. Optional: `environment_id`, `seed`,
    `task_type`, `success`, `terminated`, `truncated`. All lines are read before any is
    written; bad ones are refused by their numbers. Of Minari, data sets whose observations
    and actions are text or whole numbers can be converted.

    Examples:
      forethought data convert games.jsonl --environment-id Wordle --output data/wordle
      forethought data convert talk.jsonl --answers text --reward-range -20 0 --output data/talk
      forethought data convert minari:minigrid/BabyAI-Pickup/optimal-v0 --output data/pickup
    """
    stats = CollectionStats()
    reward_map = settings.reward_map
    with progress_bar("convert", _total(settings), "trajectory") as bar:

        def count(shard: list[Trajectory]) -> None:
            stats.add(shard)
            bar.update(len(shard))

        write_folder(
            _trajectories(settings),
            Path(settings.output),
            per_shard=settings.shard,
            reward_map=reward_map,
            on_shard=count,
        )
    if settings.json:
        print(json.dumps({"folder": settings.output, **stats.summary()}, indent=2))
        return
    print(f"{collection_line(stats)}: {settings.output}")
    print(f"next: forethought data describe {settings.output}")


def _total(settings: ConvertData) -> int | None:
    """How many trajectories there are, where that is known beforehand."""
    if settings.source.startswith(_MINARI):
        return None
    return require_chat(Path(settings.source), _format(settings))


def _trajectories(settings: ConvertData) -> Iterator[Trajectory]:
    if not settings.source.startswith(_MINARI):
        return read_chat(Path(settings.source), _format(settings))
    return _right(read_minari(settings.source.removeprefix(_MINARI)), settings)


def _format(settings: ConvertData) -> ChatFormat:
    return ChatFormat(
        settings.environment_id, settings.answers, settings.reward_map, settings.gamma
    )


def _right(trajectories: Iterator[Trajectory], settings: ConvertData) -> Iterator[Trajectory]:
    """The same trajectories, the first bad one refused."""
    for trajectory in trajectories:
        problem = first_problem(trajectory, settings.reward_map, gamma=settings.gamma)
        if problem is not None:
            raise StorageError(f"{settings.source}: episode {trajectory.seed}: {problem}")
        yield trajectory
