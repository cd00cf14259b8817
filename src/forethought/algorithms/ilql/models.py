"""π_φ and the values: what ILQL trains, saves and takes up again."""

from pathlib import Path
from typing import Literal

from torch import nn

from forethought.algorithms.ilql.config import ILQLConfig
from forethought.configs.acting import ValueActingConfig
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.loading import BEHAVIOR
from forethought.runs.sources import MODEL_DIR
from forethought.training.run import Run
from forethought.training.start import start
from forethought.value_guided.value_heads import ValueModel, load_value_model, new_value_model
from forethought.value_guided.value_weighted import VALUES, save_acting

Phase = Literal["behavior", "values"]
"""What is trained."""


class ILQLModels:
    """Satisfies `Trainable`: the module that the present phase trains."""

    def __init__(self, behavior: HuggingFacePolicy, acting: ValueActingConfig) -> None:
        """
        Args:
            behavior: π_φ; the values' layers are copied from it when they are first needed.
        """
        self.behavior = behavior
        self.values: ValueModel | None = None
        self._acting = acting
        self._trained: nn.Module = behavior.module

    @property
    def module(self) -> nn.Module:
        """Its parameters that require a gradient are trained."""
        return self._trained

    def begin(self, phase: Phase, *, seed: int) -> None:
        """Makes the models that the phase works with, and freezes those that it does not move.

        Args:
            seed: of the heads' first weights.
        """
        if phase == "behavior":
            return
        if self.values is None:
            self.values = new_value_model(self.behavior, seed=seed)
        self.behavior.module.requires_grad_(requires_grad=False)
        self.behavior.module.eval()
        self._trained = self.values

    def save(self, folder: Path) -> None:
        """Writes what is there, each as a model of its own."""
        folder.mkdir(parents=True, exist_ok=True)
        self.behavior.save(folder / BEHAVIOR)
        if self.values is not None:
            self.values.save(folder / VALUES, self.behavior)
        save_acting(folder, self._acting)


def start_ilql(config: ILQLConfig, run: Run) -> ILQLModels:
    """Makes the models: from the run's checkpoint where it goes on.

    Raises:
        ForethoughtError: a world, option, model or checkpoint that is not there.
    """
    models = ILQLModels(start(config, run, slots=1, critic=False).policy, config.acting)
    if run.checkpoint is not None and (run.checkpoint / MODEL_DIR / VALUES).is_dir():
        models.values = load_value_model(run.checkpoint / MODEL_DIR / VALUES, models.behavior)
    return models
