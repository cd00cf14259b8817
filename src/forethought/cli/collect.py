"""`forethought collect`."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from forethought.chat.policy import PREFIX
from forethought.cli.flags import Switch
from forethought.cli.hints import world_flags
from forethought.cli.interrupts import continued_by
from forethought.cli.models import find_source, require_world
from forethought.cli.players import Player, is_scripted, model_player, scripted_player
from forethought.cli.progress import progress_bar
from forethought.cli.settings import describe, read_settings
from forethought.cli.tally import Tally
from forethought.configs.api import ApiConfig
from forethought.configs.parts import EnvironmentConfig, PromptConfig, require
from forethought.errors import ConfigError, StorageError
from forethought.rollouts.store import read_shard, read_shards, write_shard
from forethought.runs.run_folder import write_text
from forethought.seals import require_seal, sealed
from forethought.types import Trajectory

_RECORD = "collection.json"
"""Says what the shards beside it were collected with."""


@dataclass(frozen=True)
class Collect:
    """Who plays, where, how often, and where it is kept."""

    output: Annotated[str, tyro.conf.arg(metavar="FOLDER")]
    """Where the shards go."""

    policy: Annotated[str, tyro.conf.arg(metavar="expert|random|data|RUN")] = "expert"
    """The world's own expert; chance; the player who made the world's offline data, where it
    has one (`data:0.5` at another skill); or a model: a run folder (its newest checkpoint), a
    checkpoint, a folder of `save_pretrained`, a hub id, or `api:NAME`, as `evaluate` takes it."""

    episodes: int = 500
    """How many in all, those included that are there already."""

    shard: int = 500
    """Episodes per file. What an interruption loses is one file at most."""

    seed: int = 0
    """Of episodes and answers. Episodes are those of demonstrations: never held-out ones."""

    temperature: float = 1.0
    """Of a model's answers; 0 takes the most likely token."""

    max_new_tokens: int = 128
    """Longest answer of a model."""

    num_envs: int = 64
    """Episodes that a model plays at the same time."""

    threads: int | None = None
    """CPU threads of PyTorch; by default OMP_NUM_THREADS, else one fewer than there are cores."""

    json: Switch = False
    """Print the summary as JSON."""

    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    prompt: PromptConfig = field(default_factory=PromptConfig)
    api: ApiConfig = field(default_factory=ApiConfig)

    def __post_init__(self) -> None:
        for name in ("episodes", "shard", "max_new_tokens", "num_envs"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        require(0 <= self.seed < 2**31, "seed", self.seed, "0 to 2147483647")
        require(self.temperature >= 0, "temperature", self.temperature, "0 or more")


def collect(settings: Collect) -> None:
    """Store episodes of an expert, of chance, of a data policy or of a model as Parquet.

    The files hold every step with prompt, picture, answer, action and reward. `train sft
    --data FOLDER` learns from them; pandas and `datasets` open them. The same command
    again goes on where it was stopped: files that are whole are kept.

    Examples:
      forethought collect --environment.id EZPoints --environment.image-size 64 --output data/ez
      forethought collect --policy data --environment.id Wordle --prompt.format action_only \\
          --output data/wordle
      forethought collect --policy random --environment.id Blackjack --output data/chance --json
      forethought collect --policy runs/ppo --episodes 1000 --output data/own_play
    """
    with continued_by(lambda: "the same command goes on where it stopped"):
        player = _player(settings)
        try:
            folder = _claim(Path(settings.output), _record(settings, player))
            tally = _gather(player, folder, settings)
        finally:
            player.close()
    if settings.json:
        print(json.dumps({"folder": settings.output, **tally.summary()}, indent=2))
        return
    print(f"{tally.in_words()}: {settings.output}")
    if settings.policy != "random":  # Nobody imitates chance.
        print(
            f"next: forethought train sft --data {shlex.quote(settings.output)} {_world(settings)}"
        )


def _world(settings: Collect) -> str:
    """The flags with which another command sees the stored episodes' world as they show it."""
    first = next((one for one in read_shards(Path(settings.output)) if one.steps), None)
    messages = () if first is None else first.steps[0].prompt.messages
    pictures = (message.image for message in messages if message.image is not None)
    size = next((picture.shape[0] for picture in pictures), None)
    return world_flags(settings.environment, settings.prompt, picture_size=size)


def collect_defaults(words: Sequence[str]) -> Collect | None:
    """A run's world and prompt, as defaults of the flags where a run is to play."""
    typed = read_settings(
        Collect, words, program="forethought collect", description=describe(collect)
    )
    if is_scripted(typed.policy):
        return None
    source = find_source(typed.policy)
    if source.config is None:
        require_world(typed.policy, words)
        return None
    return replace(
        Collect(typed.output, policy=typed.policy),
        max_new_tokens=source.max_new_tokens or typed.max_new_tokens,
        environment=source.config.environment,
        prompt=source.config.prompt,
    )


def _player(settings: Collect) -> Player:
    if is_scripted(settings.policy):
        return scripted_player(
            settings.policy, settings.environment, settings.prompt, seed=settings.seed
        )
    return model_player(
        find_source(settings.policy),
        settings.environment,
        settings.prompt,
        seed=settings.seed,
        temperature=settings.temperature,
        max_new_tokens=settings.max_new_tokens,
        slots=min(settings.num_envs, settings.shard, settings.episodes),
        threads=settings.threads,
        api=settings.api,
    )


def _record(settings: Collect, player: Player) -> dict[str, Any]:
    """All that decides what an episode looks like."""
    content = asdict(settings)
    for name in ("output", "episodes", "threads", "json", "num_envs"):
        del content[name]
    del content["environment"]["workers"]
    api = content.pop("api")
    if settings.policy.startswith(PREFIX):
        content["api"] = {name: api[name] for name in ("style", "examples")}
    if is_scripted(settings.policy):
        del content["temperature"], content["max_new_tokens"]
    return {**content, "policy": player.name}


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


def _gather(player: Player, folder: Path, settings: Collect) -> Tally:
    tally = Tally()
    with progress_bar("collect", settings.episodes, "episode") as bar:
        for first in range(0, settings.episodes, settings.shard):
            count = min(settings.shard, settings.episodes - first)
            path = folder / f"episodes_{first:07d}.parquet"
            trajectories = _stored(path, count)
            if trajectories is None:
                trajectories = player.play(range(first, first + count), bar.update)
                write_shard(path, trajectories)
            else:
                bar.update(count)
            tally.add(trajectories)
    return tally


def _stored(path: Path, count: int) -> list[Trajectory] | None:
    """The first `count` episodes of a shard that is whole; None where there is none."""
    if not path.exists():
        return None
    try:
        trajectories = read_shard(path)
    except StorageError:
        return None
    return trajectories[:count] if len(trajectories) >= count else None
