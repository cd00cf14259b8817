"""Two runs are the same, to the last bit of all that they computed."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from forethought.rollouts.store import read_shard
from forethought.runs.metrics import read_metrics

_CLOCK = {"duration_s", "timings_bytes"}
"""Fields that a clock decides."""


def assert_same_run(run: Path, whole: Path) -> None:
    """Equal logs, checkpoints, stored trajectories and pairs; nothing half-written is left."""
    assert (run / "metrics.jsonl").read_text() == (whole / "metrics.jsonl").read_text()
    assert _names(run / "checkpoints") == _names(whole / "checkpoints")
    for checkpoint in sorted((whole / "checkpoints").iterdir()):
        _assert_same_checkpoint(run / "checkpoints" / checkpoint.name, checkpoint)
    assert _names(run / "trajectories") == _names(whole / "trajectories")
    for shard in sorted((whole / "trajectories").iterdir()):
        ours, theirs = read_shard(run / "trajectories" / shard.name), read_shard(shard)
        assert _plain(ours) == _plain(theirs), shard.name
    if (whole / "pairs").exists():
        assert _names(run / "pairs") == _names(whole / "pairs")
        for file in sorted((whole / "pairs").iterdir()):
            assert (run / "pairs" / file.name).read_bytes() == file.read_bytes(), file.name


def iterations_with_pairs(run: Path) -> int:
    """How many iterations a run of DPO logged, each of which learned from pairs: one that trains
    nothing proves nothing."""
    log = read_metrics(run / "metrics.jsonl")
    used, norms = (log.column(name).values for name in ("pairs_used", "gradient_norm"))
    assert all(used > 0)
    assert all(norms > 0)
    assert any(file.stat().st_size for file in (run / "pairs").iterdir())
    return len(used)


def weights(run: Path) -> dict[str, torch.Tensor]:
    """Every trained number of a run's newest checkpoint, by name."""
    newest = max((run / "checkpoints").iterdir(), key=lambda c: int(c.name.rpartition("_")[2]))
    found: dict[str, torch.Tensor] = {}
    for file in sorted((newest / "model").rglob("*.safetensors")):
        of = file.relative_to(newest / "model").with_suffix("").as_posix()
        found |= {f"{of}/{name}": tensor for name, tensor in load_file(file).items()}
    return found


def largest_difference(one: Path, other: Path) -> float:
    """Between any two weights of two runs."""
    ours, theirs = weights(one), weights(other)
    assert ours.keys() == theirs.keys()
    return max(largest(ours[name] - theirs[name]) for name in ours)


def largest(difference: torch.Tensor) -> float:
    """Its largest absolute element."""
    return difference.abs().max().item()


def _assert_same_checkpoint(ours: Path, theirs: Path) -> None:
    files = {path.relative_to(theirs) for path in theirs.rglob("*") if path.is_file()}
    assert {path.relative_to(ours) for path in ours.rglob("*") if path.is_file()} == files
    for file in sorted(files - {Path("manifest.json")}):  # digests of what is compared here
        read = _json if file.name == "progress.json" else Path.read_bytes
        assert read(ours / file) == read(theirs / file), file


def _json(path: Path) -> Any:
    return _less(json.loads(path.read_text()), _CLOCK)


def _less(value: Any, keys: set[str]) -> Any:
    if isinstance(value, dict):
        return {key: _less(item, keys) for key, item in value.items() if key not in keys}
    return [_less(item, keys) for item in value] if isinstance(value, list) else value


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _plain(value: Any) -> Any:
    """Records and arrays as what `==` compares by content."""
    if dataclasses.is_dataclass(value):
        names = [f.name for f in dataclasses.fields(value) if f.name not in _CLOCK]
        return [type(value).__name__, *(_plain(getattr(value, name)) for name in names)]
    if isinstance(value, np.ndarray):
        return [value.shape, value.tobytes()]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
