"""π_φ, p_θ and its slowly moving copy p_θ̄: what Q-SFT trains, saves and takes up again."""

from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import nn

from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.loading import BEHAVIOR
from forethought.offline.dataset import OfflineData, load_offline
from forethought.runs.sources import MODEL_DIR
from forethought.training.run import Run
from forethought.training.start import start
from forethought.value_guided.reweighted import (
    LIKELIHOOD,
    Settings,
    Twin,
    load_twin,
    twin_again,
    twin_of,
)

TARGET = "target"
"""Folder of p_θ̄, beside the two that act."""

Phase = Literal["behavior", "returns", "likelihood"]
"""What is learned: π_φ; p_θ from what the data brought; p_θ from its own slow copy."""


class QSFTModels:
    """Satisfies `Trainable`: the module that the present phase trains."""

    def __init__(self, behavior: HuggingFacePolicy, settings: Settings, *, is_joint: bool) -> None:
        """
        Args:
            behavior: π_φ; the other two are copied from it when they are first needed.
            is_joint: whether π_φ learns on while p_θ does.
        """
        self.behavior = behavior
        self.likelihood: Twin | None = None
        self.target: Twin | None = None
        self._settings = settings
        self._is_joint = is_joint
        self._trained: nn.Module = behavior.module

    @property
    def module(self) -> nn.Module:
        """Its parameters that require a gradient are trained."""
        return self._trained

    def begin(self, phase: Phase) -> None:
        """Makes the models that the phase works with, and frees those that it does not move."""
        if phase == "behavior":
            return
        if self.likelihood is None:
            self.likelihood = twin_of(self.behavior)
        if self.target is None:
            self.target = twin_again(self.likelihood)
        self.target.module.requires_grad_(requires_grad=False)
        self.target.module.eval()
        if self._is_joint:
            both = {BEHAVIOR: self.behavior.module, LIKELIHOOD: self.likelihood.module}
            self._trained = nn.ModuleDict(both)
        else:
            self.behavior.module.requires_grad_(requires_grad=False)
            self.behavior.module.eval()
            self._trained = self.likelihood.module

    @torch.no_grad()
    def follow(self, rate: float) -> None:
        """θ̄ ← (1 - α) θ̄ + α θ, of what is trained."""
        assert self.likelihood is not None
        assert self.target is not None
        moving = zip(
            self.target.module.parameters(), self.likelihood.module.parameters(), strict=True
        )
        for slow, fast in moving:
            if fast.requires_grad:
                slow.lerp_(fast, rate)

    def save(self, folder: Path) -> None:
        """Writes what is there, each as a model of its own."""
        folder.mkdir(parents=True, exist_ok=True)
        self.behavior.save(folder / BEHAVIOR)
        for name, twin in ((LIKELIHOOD, self.likelihood), (TARGET, self.target)):
            if twin is not None:
                twin.save(folder / name, self.behavior)
        self._settings.save(folder)


class Learner(NamedTuple):
    """What every update works with."""

    models: QSFTModels
    data: OfflineData
    config: QSFTConfig
    run: Run


def start_learner(config: QSFTConfig, run: Run) -> Learner:
    """Opens the world and the data, and makes the models: from the run's checkpoint where it
    goes on.

    Raises:
        ForethoughtError: a world, option, model, checkpoint or data set that is not there.
    """
    world, behavior = start(config, run, slots=1, critic=False)
    with run.bar("reading", None) as bar:
        data = load_offline(config, world, behavior, on_episode=bar.update)
    settings = Settings(config.acting, config.support, data.dummy)
    models = QSFTModels(behavior, settings, is_joint=config.phases == "joint")
    if run.checkpoint is not None and (run.checkpoint / MODEL_DIR / LIKELIHOOD).is_dir():
        folder = run.checkpoint / MODEL_DIR
        models.likelihood = load_twin(folder / LIKELIHOOD, behavior)
        models.target = load_twin(folder / TARGET, behavior)
    return Learner(models, data, config, run)
