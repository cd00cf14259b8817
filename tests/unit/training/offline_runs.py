"""What the tests of offline runs share: the least of a run, its weights, and a kill."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from forethought.training import phases


class OneProcess:
    """As much of a run as judging asks for."""

    process, processes = 0, 1

    class accelerator:  # noqa: N801
        autocast = staticmethod(torch.enable_grad)

    def sum(self, numbers: torch.Tensor) -> torch.Tensor:
        return numbers


def weights(run: Path, step: int, file: str) -> dict[str, torch.Tensor]:
    return load_file(run / f"checkpoints/step_{step}/model/{file}")


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def stop_in(update: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills the run when the n-th update begins, once."""
    sound, begun = phases.choose, [0]

    def killed(*arguments: Any) -> Any:
        begun[0] += 1
        if begun[0] == update:
            raise KeyboardInterrupt
        return sound(*arguments)

    monkeypatch.setattr(phases, "choose", killed)
