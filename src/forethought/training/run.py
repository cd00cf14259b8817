"""The surroundings of a training loop: folder, log, checkpoints, processes, progress bar."""

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, NoReturn, TypeVar

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from tqdm import tqdm

from forethought.configs.contract import AnyConfig
from forethought.configs.file import dump_config
from forethought.configs.parts import ComputeConfig, OptimizerConfig
from forethought.durable import write_text
from forethought.errors import ConfigError
from forethought.rollouts.slot import Cursor
from forethought.rollouts.store import write_shard
from forethought.runs.checkpoints import (
    list_checkpoints,
    newest_checkpoint,
    tidy,
    write_checkpoint,
)
from forethought.runs.metrics import MetricsLog, MetricsPosition
from forethought.runs.pairs import SUFFIX as PAIRS_SUFFIX
from forethought.runs.pairs import PairPlace, write_pairs
from forethought.runs.run_folder import RunFolder
from forethought.training.optim import Updater
from forethought.training.processes import autocast, start_processes
from forethought.training.reference import Reference
from forethought.training.sharding import is_sharded
from forethought.training.state import (
    Progress,
    Trainable,
    load_optimizer,
    load_progress,
    load_randomness,
    optimizer_tensors,
    random_states,
    save_state,
)
from forethought.training.zero import is_partitioned
from forethought.types import Metric, Trajectory

T = TypeVar("T")
Existing = Literal["refuse", "resume", "overwrite"]
OnIteration = Callable[[RunFolder, Mapping[str, float]], bool | None]
"""Called after every iteration, or every update where an algorithm has no iterations, with the run
folder and the numbers that `metrics.jsonl` gets, `step` first. True stops the run after this
iteration, with a checkpoint from which it can be resumed."""

_on_iteration: ContextVar[OnIteration | None] = ContextVar("on_iteration", default=None)


@dataclass
class Run:
    """One training run as each of its processes sees it; the first alone writes."""

    folder: RunFolder
    accelerator: Accelerator
    checkpoint: Path | None
    """Where to go on from, or None for a run that starts."""
    log: MetricsLog | None
    """Log of the first process."""
    compute: ComputeConfig
    on_iteration: OnIteration | None = None
    is_stopped: bool = False
    """Whether the callback has asked to stop: the loop writes a checkpoint and ends."""

    @property
    def process(self) -> int:
        """Number of this process, from 0."""
        return self.accelerator.process_index

    @property
    def processes(self) -> int:
        """How many train together."""
        return self.accelerator.num_processes

    @property
    def steps_done(self) -> int:
        """Rounds of the training loop that need not be done again."""
        return 0 if self.progress is None else self.progress.step

    @property
    def progress(self) -> Progress | None:
        """How far the run had come when it was stopped."""
        if self.checkpoint is None:
            return None
        return load_progress(self.checkpoint).among(self.processes)

    def autocast(self) -> AbstractContextManager[None]:
        """The precision of forward passes."""
        device, recomputes = self.accelerator.device.type, self.compute.gradient_checkpointing
        return autocast(self.compute.precision, device, recomputes=recomputes)

    def record(self, step: int, metrics: Sequence[Metric], timings: Sequence[Metric] = ()) -> None:
        """Appends to the log: what was computed, and, apart, what a clock measured. Then asks the
        callback whether to go on: that of the first process decides for all."""
        if self.log is not None:
            self.log.log(step, metrics)
            self.log.log_timing(step, timings)
        if self.on_iteration is not None:
            wants_to_stop = False
            if self.accelerator.is_main_process:
                row = {"step": float(step), **dict(metrics)}
                wants_to_stop = bool(self.on_iteration(self.folder, row))
            self.is_stopped = self.gather([wants_to_stop])[0]

    def save(
        self,
        policy: Trainable,
        updater: Updater,
        *,
        step: int,
        cursors: Sequence[Cursor] = (),
        reference: Reference | None = None,
        anchor: Reference | None = None,
        environment_steps: int = 0,
    ) -> None:
        """Writes a checkpoint from which this run, killed, continues bit for bit."""
        per_process = self.gather([tuple(cursors)])
        randomness = self.gather([random_states()])
        optimizer = optimizer_tensors(updater, keep=self.log is not None)
        with updater.whole_on_first_process():
            if self.log is None:
                return
            progress = Progress(
                step=step,
                updates=updater.steps,
                metrics=self.log.position(),
                cursors=tuple(per_process),
                environment_steps=environment_steps,
            )
            write_checkpoint(
                self.folder.checkpoints_dir,
                step,
                partial(
                    save_state,
                    policy=policy,
                    optimizer=optimizer,
                    progress=progress,
                    randomness=randomness,
                    reference=reference,
                    anchor=anchor,
                ),
            )

    def make_updater(
        self,
        policy: Trainable,
        config: OptimizerConfig,
        *,
        total_steps: int,
        critic_learning_rate: float | None = None,
        is_resumed: bool = True,
    ) -> Updater:
        """An optimizer for the policy, put back to the checkpoint if there is one.

        Args:
            is_resumed: False for one that begins after what the checkpoint holds: the next
                phase of a run that was resumed in the one before.
        """
        updater = Updater(
            module=policy.module,
            accelerator=self.accelerator,
            config=config,
            total_steps=total_steps,
            critic_learning_rate=critic_learning_rate,
        )
        if self.checkpoint is not None and is_resumed:
            load_optimizer(self.checkpoint, updater, load_progress(self.checkpoint))
            load_randomness(self.checkpoint, self.process)
        return updater

    def keep(self, trajectories: Sequence[Trajectory], step: int) -> None:
        """Stores what was played, one shard per round and process."""
        name = f"step_{step:06d}_process_{self.process}.parquet"
        write_shard(self.folder.trajectories_dir / name, trajectories)

    def keep_pairs(self, pairs: Sequence[PairPlace], step: int) -> None:
        """Stores which of the responses of `keep` were compared."""
        name = f"step_{step:06d}_process_{self.process}{PAIRS_SUFFIX}"
        write_pairs(self.folder.pairs_dir / name, pairs)

    def share_of(self, number: int, name: str) -> int:
        """This process's equal part of a number that is set for all of them.

        Raises:
            ConfigError: it cannot be divided.
        """
        if number % self.processes:
            raise ConfigError(
                f"{name} is {number} — expected a multiple of the number of processes, "
                f"{self.processes}"
            )
        return number // self.processes

    def offset(self, count: int) -> int:
        """How many items the processes before this one hold, if this one holds `count`."""
        return sum(self.gather([count])[: self.process])

    def gather(self, items: list[T]) -> list[T]:
        """Every process's items, in the order of the processes, on every process."""
        if self.processes == 1:
            return items
        return gather_object(items)

    def sum(self, numbers: torch.Tensor) -> torch.Tensor:
        """Elementwise over processes."""
        if self.processes == 1:
            return numbers
        summed = self.accelerator.reduce(numbers.to(self.accelerator.device), reduction="sum")
        assert isinstance(summed, torch.Tensor)
        return summed.cpu()

    def bar(self, description: str, total: int | None) -> "tqdm[NoReturn]":
        """A progress bar on stderr, of the first process alone."""
        quiet = not self.accelerator.is_main_process
        interval = 0.2 if sys.stderr.isatty() else 20.0
        return tqdm(total=total, desc=description, mininterval=interval, disable=quiet)


def advance(bar: "tqdm[NoReturn]", steps: int) -> None:
    """Moves a bar on; whole episodes may go beyond what was planned."""
    bar.total = max(bar.total or 0, bar.n + steps)
    bar.update(steps)


@contextmanager
def open_run(config: AnyConfig, existing: Existing, *, can_shard: bool = True) -> Generator[Run]:
    """Makes or takes up the run folder and holds its lock until the end.

    A run that was stopped before its first checkpoint is resumed at its beginning.

    Args:
        can_shard: whether the algorithm can divide its weights, or their moments, among processes.

    Raises:
        ConfigError: to be replaced, and the folder holds what the run is to learn from; or
            launched with FSDP or DeepSpeed, and the weights cannot be divided.
        RunFolderError: a run is there already, or is being written; or none is there
            to be resumed.
        CheckpointError: to be resumed, but its newest checkpoint is damaged.
    """
    if existing == "overwrite":
        _refuse_to_delete_inputs(config)
    accelerator = start_processes(config.compute)
    launched = (
        "FSDP" if is_sharded(accelerator) else "DEEPSPEED" if is_partitioned(accelerator) else ""
    )
    if launched and not can_shard:
        raise ConfigError(
            f"accelerate launched {launched}, but what this run trains is not one model with its "
            "critic — expected one process, or data parallelism (MULTI_GPU, MULTI_CPU)"
        )
    with ExitStack() as stack:
        path = Path(config.output)
        if existing == "resume":
            RunFolder.open(path)
        if accelerator.is_main_process:
            folder = RunFolder.create(path, existing=existing)
            stack.enter_context(folder.lock())
            write_text(folder.config_path, dump_config(config))
            folder.write_environment(torch_threads=torch.get_num_threads())
        accelerator.wait_for_everyone()
        folder = RunFolder.open(path)
        has_checkpoint = existing == "resume" and bool(list_checkpoints(folder.checkpoints_dir))
        checkpoint = newest_checkpoint(folder.checkpoints_dir) if has_checkpoint else None
        accelerator.wait_for_everyone()  # Nothing is deleted or written while others read.
        log = None
        if accelerator.is_main_process:
            tidy(folder.checkpoints_dir)
            progress = load_progress(checkpoint) if checkpoint else None
            folder.forget_rounds_after(progress.step if progress else 0)
            position = progress.metrics if progress else MetricsPosition()
            log = stack.enter_context(
                MetricsLog.resume(folder, position)
                if existing == "resume"
                else MetricsLog.create(folder)
            )
        yield Run(folder, accelerator, checkpoint, log, config.compute, _on_iteration.get())


@contextmanager
def calling(on_iteration: OnIteration | None) -> Generator[None]:
    """Runs that are opened in this block call this after every iteration."""
    token = _on_iteration.set(on_iteration)
    try:
        yield
    finally:
        _on_iteration.reset(token)


def _refuse_to_delete_inputs(config: AnyConfig) -> None:
    output = Path(config.output).resolve()
    for field in ("model", "data", "dagger_data"):
        path = getattr(config, field, None)
        if path is not None and Path(path).resolve().is_relative_to(output):
            raise ConfigError(
                f"--overwrite would delete what the run learns from, {field} {path} — "
                "name another --output"
            )
