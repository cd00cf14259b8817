"""What a report is made from: everything that a run folder holds, read once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from forethought.algorithms.registry import algorithm_of
from forethought.configs.contract import AnyConfig
from forethought.configs.file import load_any_config
from forethought.configs.parts import TINY_MODELS
from forethought.errors import StorageError
from forethought.evaluation.faithfulness import Faithfulness
from forethought.evaluation.results import Evaluation, faithfulness_from_json
from forethought.rollouts.store import SUFFIX, read_shard
from forethought.runs.metrics import MetricsTable, read_metrics
from forethought.runs.pairs import SUFFIX as PAIRS_SUFFIX
from forethought.runs.pairs import PairPlace, read_pairs
from forethought.runs.run_folder import RunFolder
from forethought.types import Trajectory


class StartingPoint(NamedTuple):
    """The evaluated run whose model this one began with."""

    algorithm: str
    evaluation: Evaluation
    episodes: list[Trajectory]
    """Held-out ones; none where they are not stored."""


class Episodes(NamedTuple):
    """What was played, and what for."""

    played_for: Literal["evaluation", "training"]
    file_name: str
    trajectories: list[Trajectory]


class Compared(NamedTuple):
    """What a run of preferences played first and last, and what it compared last."""

    first: int
    """Iteration, from 1."""
    last: int
    early: list[Trajectory]
    late: list[Trajectory]
    pairs: list[PairPlace]
    """Pairs of the last iteration, by their places in `late`."""


@dataclass(frozen=True, eq=False)
class RunRecord:
    """One run. What the folder does not hold (yet) is None."""

    config: AnyConfig
    metrics: MetricsTable | None
    timings: MetricsTable | None
    evaluation: Evaluation | None
    start: StartingPoint | None
    episodes: Episodes | None
    compared: Compared | None
    faithfulness: Faithfulness | None
    environment: str | None
    """The text of `environment.txt`."""
    config_text: str
    written_s: float
    """When the run wrote last, seconds since 1970 (UTC)."""

    @property
    def algorithm(self) -> str:
        """As the command line calls it: `sft`, `ppo`."""
        return algorithm_of(self.config).name

    @property
    def last_step(self) -> int | None:
        """The last step in the log, or None before the first."""
        return int(self.metrics.steps[-1]) if self.metrics is not None else None


def read_run(path: Path) -> RunRecord:
    """Reads a run, also one that is still being written.

    Raises:
        ForethoughtError: the folder is no run, or a file in it is damaged.
    """
    folder = RunFolder.open(path)
    config = load_any_config(folder.config_path)
    metrics = _read_log(folder.metrics_path)
    newest = folder.config_path if metrics is None else folder.metrics_path
    return RunRecord(
        config=config,
        metrics=metrics,
        timings=_read_log(folder.timings_path),
        evaluation=_read_evaluation(folder),
        start=_read_start(config, path),
        episodes=_read_episodes(folder),
        compared=_read_compared(folder),
        faithfulness=_read_faithfulness(folder),
        environment=_read_text(folder.environment_path),
        config_text=_read_text(folder.config_path) or "",
        written_s=newest.stat().st_mtime,
    )


def _read_log(path: Path) -> MetricsTable | None:
    """A log with at least one line."""
    if not path.exists():
        return None
    table = read_metrics(path)
    return table if table.steps.size else None


def _read_evaluation(folder: RunFolder) -> Evaluation | None:
    text = _read_text(folder.evaluation_path)
    if text is None:
        return None
    try:
        return Evaluation.from_json(text)
    except StorageError as error:
        raise StorageError(f"{folder.evaluation_path}: {error}") from None


def _read_faithfulness(folder: RunFolder) -> Faithfulness | None:
    text = _read_text(folder.faithfulness_path)
    if text is None:
        return None
    try:
        return faithfulness_from_json(text)
    except StorageError as error:
        raise StorageError(f"{folder.faithfulness_path}: {error}") from None


def _read_start(config: AnyConfig, path: Path) -> StartingPoint | None:
    """The run that `config.model` names, where it was evaluated in the same environment."""
    folder = _find_start(config, path)
    found = None if folder is None else _read_evaluation(folder)
    if folder is None or found is None:
        return None
    before = load_any_config(folder.config_path)
    # A run's own evaluation is always one in its own environment.
    if _rules_of(before) != _rules_of(config):
        return None
    path = folder.evaluation_episodes_path
    return StartingPoint(
        algorithm_of(before).name, found, read_shard(path) if path.exists() else []
    )


def _rules_of(config: AnyConfig) -> tuple[str, frozenset[str]]:
    """What makes results comparable: the environment and its rules; not how it is drawn or
    hosted, nor which expert showed it."""
    options = config.environment.options
    return config.environment.id, frozenset(o for o in options if not o.startswith("expert="))


def _find_start(config: AnyConfig, path: Path) -> RunFolder | None:
    """A relative name is looked up from here, then from where the run was started."""
    if config.model in TINY_MODELS:
        return None
    model = Path(config.model)
    if model.parent.name == "checkpoints":
        model = model.parent.parent
    bases = [Path(), *_started_from(path.resolve(), Path(config.output))]
    folders = [RunFolder(base / model) for base in bases]
    return next((folder for folder in folders if folder.is_run), None)


def _started_from(path: Path, output: Path) -> list[Path]:
    """The working directory in which `output` was this path, if the path ends like it."""
    parts = output.parts
    if output.is_absolute() or ".." in parts or path.parts[-len(parts) :] != parts:
        return []
    return [path.parents[len(parts) - 1]]


def _read_episodes(folder: RunFolder) -> Episodes | None:
    """The held-out episodes, or else what was played last in training."""
    path = folder.evaluation_episodes_path
    if path.exists():
        return Episodes("evaluation", path.name, read_shard(path))
    shards = sorted(folder.trajectories_dir.glob(f"*{SUFFIX}"))
    return Episodes("training", shards[-1].name, read_shard(shards[-1])) if shards else None


def _read_compared(folder: RunFolder) -> Compared | None:
    """Pairs of the first process; None where nothing is compared."""
    files = sorted(folder.pairs_dir.glob(f"step_*_process_0{PAIRS_SUFFIX}"))
    shards = [folder.trajectories_dir / f"{file.stem}{SUFFIX}" for file in files]
    stored = [n for n, shard in enumerate(shards) if shard.exists()]
    if not stored:
        return None
    first, last = stored[0], stored[-1]
    return Compared(
        int(files[first].stem.split("_")[1]),
        int(files[last].stem.split("_")[1]),
        read_shard(shards[first]),
        read_shard(shards[last]),
        read_pairs(files[last]),
    )


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise StorageError(f"{path}: cannot be read: {reason}") from error
