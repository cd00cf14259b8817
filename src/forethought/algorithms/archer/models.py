"""The policy and its critic: what offline ArCHer trains, saves and takes up again."""

from pathlib import Path
from typing import Literal

from torch import nn

from forethought.algorithms.archer.config import ArcherConfig
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.runs.sources import MODEL_DIR
from forethought.training.run import Run
from forethought.training.start import start
from forethought.value_guided.value_heads import ValueModel, load_value_model, new_value_model

CRITIC = "critic"
"""Folder of the critic inside the policy's own."""

Phase = Literal["behavior", "critic", "actor"]
"""What is trained: the policy, by imitation; what answers are worth; the policy, by that."""


class ArcherModels:
    """Satisfies `Trainable`: the module that the present phase trains."""

    def __init__(self, policy: HuggingFacePolicy) -> None:
        """
        Args:
            policy: whose present parameters with a gradient are those that it learns with; the
                critic's layers are copied from it when they are first needed.
        """
        self.policy = policy
        self.critic: ValueModel | None = None
        self._learning = [p for p in policy.module.parameters() if p.requires_grad]
        self._trained: nn.Module = policy.module

    @property
    def module(self) -> nn.Module:
        """Its parameters that require a gradient are trained."""
        return self._trained

    def begin(self, phase: Phase, *, seed: int) -> None:
        """Makes the critic when it is first needed, and freezes what the phase does not move.

        Args:
            seed: of the heads' first weights.
        """
        if phase == "behavior":
            return
        if self.critic is None:
            self.critic = new_value_model(self.policy, seed=seed)
        is_actor = phase == "actor"
        for parameter in self._learning:
            parameter.requires_grad_(is_actor)
        if is_actor:
            self.critic.requires_grad_(requires_grad=False)
        idle = self.critic if is_actor else self.policy.module
        idle.eval()
        self._trained = self.policy.module if is_actor else self.critic

    def save(self, folder: Path) -> None:
        """Writes the policy as a model like any other, and the critic inside its folder."""
        self.policy.save(folder)
        if self.critic is not None:
            self.critic.save(folder / CRITIC, self.policy)


def start_archer(config: ArcherConfig, run: Run) -> ArcherModels:
    """Makes the models: from the run's checkpoint where it goes on.

    Raises:
        ForethoughtError: a world, option, model or checkpoint that is not there.
    """
    models = ArcherModels(start(config, run, slots=1, critic=False).policy)
    if run.checkpoint is not None and (run.checkpoint / MODEL_DIR / CRITIC).is_dir():
        models.critic = load_value_model(run.checkpoint / MODEL_DIR / CRITIC, models.policy)
    return models
