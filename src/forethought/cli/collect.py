"""`forethought collect`, and `forethought work`: episodes for a file, and for a run that trains."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from forethought.agents.collecting import CollectionSettings, collect_episodes
from forethought.agents.policies import is_scripted
from forethought.agents.sources import find_source
from forethought.cli.flags import Switch
from forethought.cli.interrupts import continued_by
from forethought.cli.next_command import environment_flags, require_environment
from forethought.cli.settings import describe, read_settings
from forethought.cli.terminal import collection_line, episodes_bar
from forethought.configs.file import load_any_config
from forethought.configs.parts import Inline, require
from forethought.errors import ConfigError, EnvironmentUnusableError
from forethought.libraries import load_quietly
from forethought.rollouts.store import read_shards
from forethought.runs.run_folder import RunFolder


@dataclass(frozen=True)
class Collect:
    """Who plays, where, how often, and where it is kept."""

    collection: Annotated[CollectionSettings, Inline()]

    json: Switch = False
    """Print the summary as JSON."""


def collect(options: Collect) -> None:
    """Store episodes of an expert, a random policy, a data policy or a model as Parquet.

    The files hold every step with prompt, image, completion, action and reward. `train sft
    --data FOLDER` learns from them; pandas and `datasets` open them. The same command
    again goes on where it was stopped: files that are whole are kept.

    Examples:
      forethought collect --environment.id EZPoints --environment.image-size 64 --output data/ez
      forethought collect --policy data --environment.id Wordle --prompt.format action_only \\
          --output data/wordle
      forethought collect --policy random --environment.id Blackjack --output data/random --json
      forethought collect --policy runs/ppo --episodes 1000 --output data/own_play
    """
    settings = options.collection
    with continued_by(lambda: "the same command goes on where it stopped"):
        stats = collect_episodes(settings, progress=episodes_bar("collect"))
    if not stats.returns:
        name = settings.environment.id
        raise EnvironmentUnusableError(
            f"{name}: {collection_line(stats)} — `forethought play {name}` shows why"
        )
    if options.json:
        print(json.dumps({"folder": settings.output, **stats.summary()}, indent=2))
        return
    print(f"{collection_line(stats)}: {settings.output}")
    if settings.policy != "random":  # Random actions are no expert data.
        print(
            f"next: forethought train sft --data {shlex.quote(settings.output)} {_flags(settings)}"
        )


def _flags(settings: CollectionSettings) -> str:
    """Flags with which another command plays the environment as the stored episodes show it."""
    first = next((one for one in read_shards(Path(settings.output)) if one.steps), None)
    messages = () if first is None else first.steps[0].prompt.messages
    images = (message.image for message in messages if message.image is not None)
    size = next((image.shape[0] for image in images), None)
    return environment_flags(settings.environment, settings.prompt, image_size=size)


def collect_defaults(words: Sequence[str]) -> Collect | None:
    """A run's environment and prompt, as defaults of the flags where a run is to play."""
    options = read_settings(
        Collect, words, program="forethought collect", description=describe(collect)
    )
    typed = options.collection
    if is_scripted(typed.policy):
        return None
    source = find_source(typed.policy)
    if source.config is None:
        require_environment(typed.policy, words)
        return None
    usual = typed.sampling
    own = replace(
        CollectionSettings(typed.output, policy=typed.policy),
        sampling=replace(usual, max_new_tokens=source.max_new_tokens or usual.max_new_tokens),
        environment=source.config.environment,
        prompt=source.config.prompt,
    )
    return Collect(own)


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
    which others then play. It ends when the run does, and waits for a run that was stopped.

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
