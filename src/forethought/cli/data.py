"""`forethought data describe`, `forethought data validate` and `forethought data convert`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from forethought.cli.flags import Operand, Placeholder, Switch
from forethought.cli.terminal import align, collection_line, number, percent, progress_bar
from forethought.configs.parts import require
from forethought.data.description import Description, Distribution, TaskDescription, to_json
from forethought.data.description import describe as count
from forethought.data.folder import write_folder
from forethought.data.from_chat import ChatFormat, read_chat, require_chat
from forethought.data.from_minari import read_minari
from forethought.data.validation import first_problem
from forethought.data.validation import validate as check
from forethought.errors import StorageError, visible
from forethought.evaluation.statistics import CollectionStats
from forethought.targets.reward_map import RewardMap
from forethought.types import Trajectory

_SHOWN = 20
"""Faults that are printed one by one."""


@dataclass(frozen=True)
class DescribeData:
    """Which data set, and where the page goes."""

    source: Annotated[str, Operand("DATA")]
    """A folder of shards, or one shard."""

    page: Annotated[str | None, Placeholder("FILE.html")] = None
    """Where the page is written; by default description.html beside the shards."""

    gamma: float = 1.0
    """Discount per step, of the range that returns lie in."""

    json: Switch = False
    """Print the description as JSON."""

    def __post_init__(self) -> None:
        require(0 <= self.gamma <= 1, "gamma", self.gamma, "0 to 1")


@dataclass(frozen=True)
class ValidateData:
    """Which data set."""

    source: Annotated[str, Operand("DATA")]
    """A folder of shards, or one shard."""

    gamma: float = 1.0
    """Discount per step, at which returns must lie in the declared reward map."""

    json: Switch = False
    """Print what was found as JSON."""

    def __post_init__(self) -> None:
        require(0 <= self.gamma <= 1, "gamma", self.gamma, "0 to 1")


def describe_data(settings: DescribeData) -> None:
    """Count a data set: how much, how good, how long, in which range.

    Episodes, success, returns, invalid actions, lengths in steps, tokens and characters,
    the range of returns and the reward map that the folder declares (reward_map.json), per
    kind of task where there are several. The same is written as an HTML page with a replay
    of some episodes and histograms, which opens from disk. Data may be larger than memory.

    Examples:
      forethought data describe data/ez_points
      forethought data describe runs/ppo/trajectories --gamma 0.9 --json
      forethought data describe data/wordle/episodes_0000000.parquet --page /tmp/wordle.html
    """
    from forethought.reports.dataset import write_dataset_page
    from forethought.rollouts.store import read_shards

    source = Path(settings.source)
    description = count(source, gamma=settings.gamma)
    folder = source if source.is_dir() else source.parent
    page = Path(settings.page) if settings.page else folder / "description.html"
    write_dataset_page(description, read_shards(source), page)
    if settings.json:
        print(to_json(description), end="")
        return
    for line in _lines(description):
        print(visible(line))
    print(f"\nwritten: {page}")


def validate_data(settings: ValidateData) -> int:
    """Check a data set; the exit code is 1 where anything is wrong.

    Every shard: its seal (no byte lost or altered), its schema version, its columns. Every
    trajectory: consecutive numbers, ends, spans that tile the tokens, offsets, log-probs,
    finite rewards, and returns inside the reward map if the folder declares one
    (reward_map.json). Each fault is one line that names shard and trajectory.

    Examples:
      forethought data validate data/ez_points
      forethought data validate data/wordle --gamma 0.99 --json
    """
    found = check(Path(settings.source), gamma=settings.gamma)
    if settings.json:
        print(found.to_json(), end="")
        return 1 if found.faults else 0
    for fault in found.faults[:_SHOWN]:
        print(visible(fault.line))
    if len(found.faults) > _SHOWN:
        print(f"… and {len(found.faults) - _SHOWN:,} more (--json lists them)")
    counts = {"shards": found.shards, "trajectories": found.trajectories, "steps": found.steps}
    counts["faults"] = len(found.faults)
    print(", ".join(f"{name}: {count:,}" for name, count in counts.items()))
    return 1 if found.faults else 0


def _lines(description: Description) -> Iterator[str]:
    """For persons."""
    whole = description.whole
    environments = ", ".join(description.environment_ids)
    size = f"{description.bytes / 1e6:,.1f} MB"
    yield f"{description.source}: {environments}, {size}, shards: {description.shards:,}"
    yield ""
    tasks = [whole, *description.tasks]
    heads = ("", "episodes", "success [95 %]", "return [95 %]", "invalid", "steps")
    yield from align([heads, *map(_task_cells, tasks)])
    yield ""
    heads = ("", "mean", "lowest", "10 %", "median", "90 %", "highest")
    yield from align([heads, *(_cells(*named) for named in _distributions(whole))])
    yield ""
    yield from _remarks(description)


def _task_cells(task: TaskDescription) -> tuple[str, ...]:
    return (
        task.task_type or "all",
        f"{task.episodes:,}",
        percent(task.success_rate, task.success_interval),
        number(task.mean_return, task.return_interval),
        percent(task.invalid_rate),
        f"{task.steps:,}",
    )


def _distributions(task: TaskDescription) -> Iterator[tuple[str, Distribution]]:
    yield "return", task.returns
    yield "steps per episode", task.episode_steps
    yield "reward per step", task.rewards
    yield "tokens per prompt", task.prompt_tokens
    yield "completion tokens", task.completion_tokens
    yield "completion characters", task.completion_characters


def _cells(name: str, numbers: Distribution) -> tuple[str, ...]:
    if not numbers.total:
        return (name, *("–" for _ in range(6)))
    middle = (numbers.quantile(share) for share in (0.1, 0.5, 0.9))
    return (name, *(f"{x:,.5g}" for x in (numbers.mean, numbers.lowest, *middle, numbers.highest)))


def _remarks(description: Description) -> Iterator[str]:
    whole, span, declared = description.whole, description.returns_to_go, description.reward_map
    if whole.parts or whole.lost:
        yield (
            f"parts of episodes, in no number per episode: {whole.parts:,}; "
            f"episodes lost to the environment: {whole.lost:,}"
        )
    yield f"different starts: {description.seeds:,}; steps with an image: {description.images:,}"
    if span is not None:
        yield f"returns-to-go at gamma {description.gamma:g}: {span[0]:g} to {span[1]:g}"
    yield (
        "reward map: none declared"
        if declared is None
        else f"reward map: {declared.lowest:g} to {declared.highest:g} becomes 0 to 1"
    )


_MINARI = "minari:"


@dataclass(frozen=True)
class ConvertData:
    """What is converted, and where it goes."""

    source: Annotated[str, Operand("FILE.jsonl|minari:NAME")]
    """Conversations, one JSON object per line; or a data set of Minari's on this machine."""

    output: Annotated[str, Placeholder("FOLDER")]
    """Where the shards go; must not be there."""

    environment_id: str | None = None
    """Environment of the lines that name none."""

    responses: Literal["json", "json_last", "text"] = "json"
    """Form of an assistant's message: a response that ends in `"action": "…"`, as models give it
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
      forethought data convert talk.jsonl --responses text --reward-range -20 0 --output data/talk
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
        settings.environment_id, settings.responses, settings.reward_map, settings.gamma
    )


def _right(trajectories: Iterator[Trajectory], settings: ConvertData) -> Iterator[Trajectory]:
    """The same trajectories, the first bad one refused."""
    for trajectory in trajectories:
        problem = first_problem(trajectory, settings.reward_map, gamma=settings.gamma)
        if problem is not None:
            raise StorageError(f"{settings.source}: episode {trajectory.seed}: {problem}")
        yield trajectory
