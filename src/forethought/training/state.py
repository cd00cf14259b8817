"""Everything that must survive a kill, as files: weights, optimizer, randomness, progress."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from forethought.errors import CheckpointError
from forethought.rollouts.slot import Cursor
from forethought.rollouts.store import count_steps
from forethought.runs.checkpoints import MODEL_DIR
from forethought.runs.metrics import MetricsPosition
from forethought.runs.run_folder import RunFolder
from forethought.training.optim import Updater
from forethought.training.reference import ANCHOR_FILE, Reference
from forethought.training.sharding import gathered, placed_like

_OPTIMIZER = "optimizer.safetensors"
_RANDOMNESS = "randomness.safetensors"
_PROGRESS = "progress.json"


class Trainable(Protocol):
    """A policy whose weights an optimizer moves and a checkpoint holds."""

    @property
    def module(self) -> nn.Module:
        """Parameters that require a gradient are trained."""
        ...

    def save(self, folder: Path) -> None:
        """Writes what is needed to act again."""
        ...


@dataclass(frozen=True)
class Progress:
    """How far a run has come. What is not here follows from the settings and the seed."""

    step: int
    """Rounds of the training loop: optimizer steps (SFT) or iterations (PPO)."""
    updates: int
    """Optimizer steps."""
    metrics: MetricsPosition
    """Where the metrics stood: what was logged later is taken back."""
    cursors: tuple[tuple[Cursor, ...], ...] = ()
    """Per process, per slot: where its episode stands."""
    environment_steps: int = 0
    """Environment steps of algorithms whose rounds take as many as their episodes do."""

    def among(self, processes: int) -> "Progress":
        """The same slots, dealt in equal parts to so many processes."""
        slots = [cursor for part in self.cursors for cursor in part]
        share = len(slots) // processes
        parts = (slots[share * i : share * (i + 1)] for i in range(processes))
        return replace(self, cursors=tuple(map(tuple, parts)))


def save_state(
    folder: Path,
    *,
    policy: Trainable,
    optimizer: Mapping[str, Tensor],
    progress: Progress,
    randomness: Sequence[Mapping[str, Tensor]],
    reference: Reference | None = None,
    anchor: Reference | None = None,
) -> None:
    """Writes all of it into a folder that will become a checkpoint.

    Args:
        policy: its weights whole, and in this process.
        optimizer: `optimizer_tensors`.
        randomness: per process, its `random_states`.
        reference: for algorithms that have one.
        anchor: a second one, which is never refreshed.
    """
    policy.save(folder / MODEL_DIR)
    if reference is not None:
        reference.save(folder)
    if anchor is not None:
        anchor.save(folder, ANCHOR_FILE)
    save_file(dict(optimizer), folder / _OPTIMIZER)
    states = {f"{i}/{k}": state for i, one in enumerate(randomness) for k, state in one.items()}
    save_file(states, folder / _RANDOMNESS)
    (folder / _PROGRESS).write_text(json.dumps(asdict(progress)) + "\n", encoding="utf-8")


def load_progress(checkpoint: Path) -> Progress:
    """Reads how far the run had come.

    Checkpoints of earlier versions do not hold the environment steps: these are counted in
    what the run has stored up to there.
    """
    content: dict[str, Any] = json.loads((checkpoint / _PROGRESS).read_text(encoding="utf-8"))
    if "environment_steps" not in content:
        content["environment_steps"] = sum(map(count_steps, stored_rounds(checkpoint)))
    content["metrics"] = MetricsPosition(**content["metrics"])
    content["cursors"] = tuple(
        tuple(Cursor(episode, tuple(actions), total) for episode, actions, total in slots)
        for slots in content["cursors"]
    )
    return Progress(**content)


def stored_rounds(checkpoint: Path) -> list[Path]:
    """Shards of what the run played up to this checkpoint."""
    shards = RunFolder(checkpoint.parent.parent).trajectories_dir.glob("step_*_process_*.parquet")
    last = int(checkpoint.name.removeprefix("step_"))
    return sorted(shard for shard in shards if int(shard.name.split("_")[1]) <= last)


def random_states() -> dict[str, Tensor]:
    """Where torch's generators of this process stand."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def load_randomness(checkpoint: Path, process: int) -> None:
    """Puts torch's generators of this process back to where they stood; a process that the run
    did not have before keeps its own."""
    states = load_file(checkpoint / _RANDOMNESS)
    if (cpu := states.get(f"{process}/cpu")) is not None:
        torch.set_rng_state(cpu)
    if torch.cuda.is_available() and (cuda := states.get(f"{process}/cuda")) is not None:
        torch.cuda.set_rng_state(cuda)


def load_optimizer(checkpoint: Path, updater: Updater, progress: Progress) -> None:
    """Puts the optimizer back to where it was.

    Raises:
        CheckpointError: the checkpoint trained other parameters than this run does.
    """
    saved = load_file(checkpoint / _OPTIMIZER)
    partitions = updater.partitions
    fresh = _remembered(updater) if partitions is None else {}
    expected = set(fresh) if partitions is None else partitions.names
    if expected != set(saved):
        example = sorted(expected ^ set(saved))[0].rsplit("/", 1)[0]
        raise CheckpointError(
            f"{checkpoint}: trained other parameters than this run, {example} for one — "
            "resume with the settings that the run was started with"
        )
    if partitions is not None:
        partitions.recall(saved)
        updater.steps = progress.updates
        return
    for optimizer in updater.optimizers:
        for name, parameter in _named(updater, optimizer):
            optimizer.state[parameter] = {
                key: placed_like(saved[f"{name}/{key}"], fresh[f"{name}/{key}"])
                for key in _fresh_state(optimizer, parameter)
            }
    updater.steps = progress.updates


def optimizer_tensors(updater: Updater, *, keep: bool = True) -> dict[str, Tensor]:
    """What the optimizers remember, by parameter and name; whole, for all processes at once.

    Args:
        keep: False: of what is sharded this process only gives its part.
    """
    if updater.partitions is not None:
        return {name: tensor.cpu() for name, tensor in updater.partitions.remembered() if keep}
    return {name: gathered(tensor, keep=keep) for name, tensor in _remembered(updater).items()}


def _remembered(updater: Updater) -> dict[str, Tensor]:
    """What the optimizers remember; what they start with, where there was no gradient yet (a
    vision tower in an environment of text)."""
    return {
        f"{name}/{key}": tensor
        for optimizer in updater.optimizers
        for name, parameter in _named(updater, optimizer)
        for key, tensor in (
            optimizer.state.get(parameter) or _fresh_state(optimizer, parameter)
        ).items()
    }


def _named(updater: Updater, optimizer: Optimizer) -> Iterator[tuple[str, Tensor]]:
    mine = {id(p) for group in optimizer.param_groups for p in group["params"]}
    return ((name, p) for name, p in updater.trained.items() if id(p) in mine)


def _fresh_state(optimizer: Optimizer, parameter: Tensor) -> dict[str, Tensor]:
    """State of Muon or of Adam, before the first step."""
    if "ns_steps" in optimizer.param_groups[0]:
        return {"momentum_buffer": torch.zeros_like(parameter)}
    return {
        "step": torch.tensor(0.0, device=parameter.device),  # Where fused Adam keeps it.
        "exp_avg": torch.zeros_like(parameter),
        "exp_avg_sq": torch.zeros_like(parameter),
    }
