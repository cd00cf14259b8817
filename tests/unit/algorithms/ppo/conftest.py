"""The tiny model with sharpened random weights, one thread, and what PPO's runs are told."""

from collections.abc import Callable
from typing import Any

import pytest

from forethought.algorithms.ppo import train as ppo
from forethought.algorithms.ppo.samples import Sample
from tests.unit.models.conftest import make_prompts, one_thread, tiny

__all__ = ["make_prompts", "one_thread", "tiny"]  # fixtures, used by name


def change_samples(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[int, Sample], Sample]
) -> None:
    sound = ppo.compute_advantages

    def changed(*arguments: Any) -> list[Sample]:
        return [change(number, sample) for number, sample in enumerate(sound(*arguments))]

    monkeypatch.setattr(ppo, "compute_advantages", changed)
