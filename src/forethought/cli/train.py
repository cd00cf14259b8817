"""`forethought train NAME`: one command for every algorithm and preset of the registry."""

import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Generic, Literal, NamedTuple

from forethought.algorithms.registry import Algorithm, Preset, algorithm, algorithm_of, preset
from forethought.cli.flags import Placeholder, Switch, fields_of, value_of
from forethought.cli.interrupts import continued_by
from forethought.configs.contract import AnyConfig
from forethought.configs.file import ConfigT, dump_config, load_config, preset_config
from forethought.configs.parts import Inline, require
from forethought.errors import ConfigError
from forethought.libraries import is_first_process, load_quietly
from forethought.rollouts.task import require_known
from forethought.runs.checkpoints import list_checkpoints
from forethought.runs.run_folder import RunFolder
from forethought.runs.trackers import TrackerName, logging_to

Existing = Literal["refuse", "resume", "overwrite"]


@dataclass(frozen=True)
class Train(Generic[ConfigT]):
    """What to train with, and what to do with the run folder."""

    settings: Annotated[ConfigT, Inline()]
    """What is written into the run folder."""

    config: Annotated[str | None, Placeholder("FILE.yaml")] = None
    """Settings in a file; flags override them."""

    resume: Annotated[str | None, Placeholder("RUN")] = None
    """Continue the run in this folder, with its own settings."""

    overwrite: Switch = False
    """Delete the run that is in the output folder, and start again."""

    log: tuple[TrackerName, ...] | None = None
    """Where the numbers of metrics.jsonl go besides; by default TensorBoard, or what a resumed
    run has. wandb and trackio need the extra `tracking`; WANDB_MODE=offline does not upload."""

    dry_run: Switch = False
    """Print all settings and the plan (steps, tokens, memory), then stop; nothing is written."""

    processes: int = 1
    """Processes on this machine that train together, each on its share of the cores, or on a GPU of
    its own. What they learn is what one learns, up to rounding. Several machines: `accelerate
    launch`."""

    @property
    def existing(self) -> Existing:
        """What to do with a run that is in the output folder."""
        if self.resume is not None:
            return "resume"
        return "overwrite" if self.overwrite else "refuse"


class TrainCommand(NamedTuple):
    """`train NAME`, made from the algorithm's record."""

    run: Callable[[Any], None]
    kind: Any
    """The type of `run`'s argument."""
    description: str
    defaults: Callable[[Sequence[str]], Any]
    """From what was typed to the settings that flags change: those of the file, or of the run,
    that was named."""


def train_command(name: str) -> TrainCommand:
    """The command of an algorithm, or of a preset: its settings laid over the algorithm's
    defaults.

    Raises:
        UnknownNameError: there is neither.
        ConfigError: it belongs to a package that cannot be imported.
    """
    chosen, named = algorithm(name), preset(name)

    def run(settings: Train[Any]) -> None:
        _train(chosen, settings)

    def defaults(words: Sequence[str]) -> Train[Any]:
        return Train(_defaults(words, preset_config(name)))

    description = chosen.description if named is None else _described(named, chosen)
    return TrainCommand(run, Train[chosen.config_class], description, defaults)


def _described(named: Preset, chosen: Algorithm) -> str:
    """The help of a preset."""
    flags = " ".join(f"--{field.replace('_', '-')} {value}" for field, value in named.settings)
    return (
        f"{named.summary}\n\nThe same as: forethought train {chosen.name} {flags}\n\n"
        f"Flags and --config change that.\n\nExamples:\n"
        f"  forethought train {named.name} --environment.id NumberLine --output runs/{named.name}"
    )


def _train(chosen: Algorithm, settings: Train[Any]) -> None:
    """Trains. The loop is not imported before the settings have been checked: with it comes
    torch."""
    config = _checked(settings)
    if settings.dry_run:
        _print_plan(config)
        return
    if settings.processes != 1:
        sys.exit(_launched(chosen.name, config, settings))
    with logging_to(settings.log), _session(chosen.name, config, settings.existing):
        chosen.train_run(config, existing=settings.existing)


def _launched(name: str, config: AnyConfig, settings: Train[Any]) -> int:
    """Trains in several processes; what can be refused is refused here, by one of them."""
    require(settings.processes >= 1, "--processes", settings.processes, "1 or more")
    require_known(config.environment)
    from forethought.training.launch import launch, refuse_second_launch

    refuse_second_launch(settings.processes, os.environ)
    load_quietly(threads=config.compute.threads)
    log = [] if settings.log is None else ["--log", *settings.log]
    with logging_to(settings.log):
        pass  # A tracker that is not installed is refused here.
    if settings.resume is not None:
        return launch(settings.processes, ["train", name, "--resume", settings.resume, *log])
    algorithm_of(config).check_run(config)
    with TemporaryDirectory(prefix="forethought-") as folder:
        file = Path(folder) / "settings.yaml"
        file.write_text(dump_config(config), encoding="utf-8")
        words = ["train", name, "--config", str(file), *log]
        return launch(settings.processes, [*words, *(["--overwrite"] * settings.overwrite)])


def _defaults(words: Sequence[str], own: ConfigT) -> ConfigT:
    file, run = value_of(words, "--config"), value_of(words, "--resume")
    if run is not None:
        return _stored(run, type(own))
    return own if file is None else load_config(Path(file), type(own), default=own)


def _stored(run: str, kind: type[ConfigT]) -> ConfigT:
    """The settings of a run; the run may have been moved since it was started."""
    return replace(load_config(RunFolder.open(Path(run)).config_path, kind), output=run)


def _checked(settings: Train[ConfigT]) -> ConfigT:
    """The settings to train with.

    Raises:
        ConfigError: a run is to be resumed with settings that are not its own.
    """
    config = settings.settings
    if settings.resume is None:
        return config
    for flag, given in (("config", settings.config), ("overwrite", settings.overwrite)):
        if given:
            raise ConfigError(
                f"--resume and --{flag} exclude each other — a run is resumed with its own settings"
            )
    stored = _stored(settings.resume, type(config))
    for name, own, other in differences(stored, config):
        raise ConfigError(
            f"{name} is {other!r}, but {own!r} in {settings.resume} — a run is resumed with its "
            "own settings: leave that out, or start another run with another --output"
        )
    return stored


def differences(first: Any, second: Any) -> Iterator[tuple[str, Any, Any]]:
    """Fields of two settings that are not equal, by dotted name, with both values."""
    for field in fields_of(type(first)):
        one, other = (attrgetter(".".join(field.path))(settings) for settings in (first, second))
        if one != other:
            yield field.dotted, one, other


@contextmanager
def _session(algorithm: str, config: AnyConfig, existing: Existing) -> Generator[None]:
    """Around training: quiet libraries; settings that cannot work are refused before anything
    is written or deleted; what to do after an interruption; and what to do next."""
    with continued_by(lambda: _way_on(algorithm, config)):
        require_known(config.environment)  # At once; the libraries below take seconds to load.
        load_quietly(threads=config.compute.threads)
        if existing != "resume":
            algorithm_of(config).check_run(config)
        before = _newest_checkpoint(config) if existing == "resume" else None
        yield
    if is_first_process():
        if before is not None and before == _newest_checkpoint(config):
            print(f"{config.output}: had finished already, at {before}", file=sys.stderr)
        print(config.output)
        print(f"next: forethought evaluate {config.output}")


def _newest_checkpoint(config: AnyConfig) -> str | None:
    """Its name; None where there is none."""
    checkpoints = list_checkpoints(RunFolder(Path(config.output)).checkpoints_dir)
    return checkpoints[-1].name if checkpoints else None


def _way_on(algorithm: str, config: AnyConfig) -> str | None:
    """How a run that was stopped goes on; None where it had not begun."""
    folder = RunFolder(Path(config.output))
    if not folder.is_run or folder.config_path.read_text(encoding="utf-8") != dump_config(config):
        return None
    has_checkpoint = _newest_checkpoint(config) is not None
    verb = "continue" if has_checkpoint else "there is no checkpoint yet; start over"
    return f"{verb} with: forethought train {algorithm} --resume {config.output}"


def _print_plan(config: AnyConfig) -> None:
    load_quietly(threads=config.compute.threads)  # What it times, it times as training would do it.
    plan = algorithm_of(config).plan_run(config)
    print(dump_config(config), end="")
    for line in plan:
        print(f"# {line}")
