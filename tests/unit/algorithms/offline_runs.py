"""What the tests of offline runs share: the least of a run, its weights, and a kill."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from forethought.configs.contract import OfflineConfig
from forethought.training import phases


class OneProcess:
    """As much of a run as judging asks for."""

    process, processes = 0, 1

    autocast = staticmethod(torch.enable_grad)

    def sum(self, numbers: torch.Tensor) -> torch.Tensor:
        return numbers


def weights(run: Path, step: int, file: str) -> dict[str, torch.Tensor]:
    return load_file(run / f"checkpoints/step_{step}/model/{file}")


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def stop_in(update: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills the run when the n-th update begins, once."""
    sound, begun = phases.choose_batch, [0]

    def killed(*arguments: Any) -> Any:
        begun[0] += 1
        if begun[0] == update:
            raise KeyboardInterrupt
        return sound(*arguments)

    monkeypatch.setattr(phases, "choose_batch", killed)


def assert_resumed_equals_never_stopped(
    train: Callable[..., Path],
    config: OfflineConfig,
    stopped_in: int,
    parts: Sequence[str],
    last: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed in an update and taken up at the checkpoint before it: the same weights and log.

    Args:
        train: of the algorithm that these are settings of.
        stopped_in: number of the update, from 1.
        parts: files of weights in the model's folder.
        last: number of the run's last update.
    """
    whole = train(replace(config, output=config.output + "_whole"))
    stop_in(stopped_in, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train(config)
    run = train(config, existing="resume")
    for part in parts:
        assert same(weights(whole, last, part), weights(run, last, part))
    metrics = [(one / "metrics.jsonl").read_text(encoding="utf-8") for one in (whole, run)]
    assert metrics[0] == metrics[1]
