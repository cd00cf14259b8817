"""`forethought data alfworld`."""

import importlib.util
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from forethought.cli.flags import Switch
from forethought.cli.terminal import progress_bar
from forethought.configs.parts import require
from forethought.errors import MissingDependencyError


@dataclass(frozen=True)
class GenerateALFWorld:
    """How many games, and where they go."""

    output: str
    """Folder of the games; a part that is there already is kept."""

    games: int = 3000
    """Games of the training split. The official data have 3,553."""

    validation_games: int = 200
    """Games of each of valid_seen and valid_unseen. The official data have 140 and 134."""

    seed: int = 0
    """Other seeds give other games in the same rooms."""

    workers: int | None = None
    """Processes; by default one for each processor."""

    json: Switch = False
    """Print the counts as JSON."""

    def __post_init__(self) -> None:
        require(0 <= self.games <= 100_000, "games", self.games, "0 to 100000")
        number = self.validation_games
        require(0 <= number <= 10_000, "validation_games", number, "0 to 10000")
        require(0 <= self.seed < 2**31, "seed", self.seed, "0 to 2147483647")
        workers = self.workers
        require(workers is None or 0 <= workers <= 256, "workers", workers, "0 to 256")


def generate_alfworld(settings: GenerateALFWorld) -> None:
    """Make ALFWorld games, in the file tree and format of the official ones.

    Six kinds of task in 120 rooms; valid_unseen has rooms and pairs of thing and place that
    training never sees. Every game is solved by the expert within 50 commands. Games that are
    there already are kept, so a command that was stopped goes on.

    Examples:
      forethought data alfworld --games 3000 --seed 0 --output data/alfworld
      forethought train sft --environment.id ALFWorld --environment.options games=data/alfworld
      ALFWORLD_DATA=data/alfworld forethought play ALFWorld
    """
    if importlib.util.find_spec("fast_downward") is None:
        raise MissingDependencyError(
            'ALFWorld games need alfworld — run: pip install "forethought[alfworld]"'
        )
    from forethought.environments.alfworld.generator import (
        default_workers,
        present_games,
        write_games,
    )
    from forethought.environments.alfworld.package import SPLITS

    root, started = Path(settings.output), perf_counter()
    workers = default_workers() if settings.workers is None else settings.workers
    made: Counter[tuple[str, str]] = Counter()
    kept: Counter[str] = Counter()
    for split in SPLITS:
        wanted = settings.games if split == "train" else settings.validation_games
        present = present_games(root, split, settings.seed)
        missing = [index for index in range(wanted) if index not in present]
        kept[split] = len(present)
        bar = progress_bar(split, wanted, "game", done=wanted - len(missing))
        for written in write_games(root, settings.seed, split, missing, workers=workers):
            made[split, written.task] += 1
            bar.update()
        bar.close()
    _tell(settings, made, kept, perf_counter() - started)


def _tell(
    settings: GenerateALFWorld,
    made: "Counter[tuple[str, str]]",
    kept: "Counter[str]",
    duration_s: float,
) -> None:
    if settings.json:
        import json

        tasks = [{"split": s, "task": task, "games": n} for (s, task), n in sorted(made.items())]
        print(json.dumps({"output": settings.output, "made": tasks, "kept": dict(kept)}))
        return
    for split in kept:
        kinds = {task: count for (name, task), count in made.items() if name == split}
        listed = ", ".join(f"{task} {count}" for task, count in sorted(kinds.items()))
        total = sum(kinds.values())
        print(f"{split}: {total} made{f' ({listed})' if listed else ''}, {kept[split]} kept")
    total = made.total()
    if total:
        print(f"{total / duration_s:.1f} games/s, each solved by the expert within 50 commands")
    print(settings.output)
