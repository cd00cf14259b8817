"""Settings of the baseline without words: `forethought train cnn`."""

import math
from dataclasses import dataclass, field
from typing import Literal

from forethought.configs.contract import (
    ENVIRONMENT_STEPS,
    EnvironmentField,
    PathField,
    RunLength,
    environment_field,
    path_field,
    settle,
)
from forethought.configs.parts import (
    ComputeConfig,
    OptimizerConfig,
    PromptConfig,
    RolloutConfig,
    SamplingConfig,
    require,
)

CNN = "cnn"
"""As `model`: convolutions, randomly initialized."""


@dataclass(frozen=True)
class CNNConfig:
    """CNN+RL: a small network that sees what the model sees and names an action (RL4VLM)."""

    model: PathField = path_field(CNN)
    """Where the image's features come from: "cnn" (convolutions, randomly initialized and
    trained), or a run folder, a folder of `save_pretrained` or a hub id, whose vision tower
    gives features and is left as it is."""

    output: PathField = path_field("runs/cnn")
    """The run folder."""

    seed: int = 0
    """Of initial weights, episodes, actions and shuffling."""

    total_steps: int = 15360
    """Environment steps in all. RL4VLM: 15,000 (cards)."""

    hidden_size: int = 256
    """Width of the two hidden layers."""

    pooling: Literal["flatten", "mean"] = "flatten"
    """Of a vision tower's patches: all, side by side, or their mean, which forgets places."""

    text_length: int = 32
    """Characters of the observation's text that are read, the last ones, where there is text."""

    gamma: float = 0.9
    """Discount per environment step."""

    gae_lambda: float = 0.95
    """Of generalized advantage estimation."""

    clip: float = 0.1
    """The ratio of new to old probability counts only within this distance of 1."""

    value_clip: float | None = None
    """A critic's estimate counts only within this distance of what it was in the rollout;
    null: wherever it is."""

    value_coefficient: float = 0.5
    """Weight of the critic's loss."""

    entropy_coefficient: float = 0.01
    """Weight of the mean entropy of the actions, as a bonus."""

    epochs: int = 4
    """Passes over each iteration's steps."""

    batch_size: int = 128
    """Environment steps per optimizer step."""

    checkpoint_every: int = 5
    """Iterations between checkpoints; the two newest are kept."""

    environment: EnvironmentField = environment_field()
    rollout: RolloutConfig = field(
        default_factory=lambda: RolloutConfig(
            sampling=SamplingConfig(temperature=1.0, max_new_tokens=1), on_invalid="penalize"
        )
    )
    """`max_new_tokens`, `constrain_actions` and `on_invalid` have no effect here."""
    optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(
            learning_rate=3e-4, final_learning_rate=1e-8, schedule="linear"
        )
    )
    compute: ComputeConfig = field(default_factory=ComputeConfig)
    """Of these only `threads` matters."""

    def __post_init__(self) -> None:
        settle(self)
        require(0 <= self.seed < 2**31, "seed", self.seed, "0 to 2147483647")
        every = self.checkpoint_every
        require(every >= 1, "checkpoint_every", every, "1 or more")
        steps = self.rollout.steps_per_iteration
        expected = f"at least rollout.steps_per_iteration ({steps})"
        require(self.total_steps >= steps, "total_steps", self.total_steps, expected)
        require(1 <= self.hidden_size <= 8192, "hidden_size", self.hidden_size, "1 to 8192")
        require(1 <= self.text_length <= 1024, "text_length", self.text_length, "1 to 1024")
        require(0 <= self.gamma <= 1, "gamma", self.gamma, "0 to 1")
        require(0 <= self.gae_lambda <= 1, "gae_lambda", self.gae_lambda, "0 to 1")
        require(0 < self.clip < 1, "clip", self.clip, "between 0 and 1")
        reach = self.value_clip
        require(reach is None or reach > 0, "value_clip", reach, "above 0, or null")
        weight = self.value_coefficient
        require(weight >= 0, "value_coefficient", weight, "0 or more")
        bonus = self.entropy_coefficient
        require(bonus >= 0, "entropy_coefficient", bonus, "0 or more")
        require(self.epochs >= 1, "epochs", self.epochs, "1 or more")
        expected = f"1 to rollout.steps_per_iteration ({steps})"
        require(1 <= self.batch_size <= steps, "batch_size", self.batch_size, expected)
        precision = self.compute.precision
        require(precision == "fp32", "compute.precision", precision, "fp32 for this small network")

    @property
    def prompt(self) -> PromptConfig:
        """Nothing is said to this agent; an expert beside it speaks as usual."""
        return PromptConfig()

    @property
    def iterations(self) -> int:
        """Rounds of collecting and updating."""
        return self.total_steps // self.rollout.steps_per_iteration

    @property
    def updates_per_iteration(self) -> int:
        """Optimizer steps between two collections."""
        return self.epochs * math.ceil(self.rollout.steps_per_iteration / self.batch_size)

    @property
    def data(self) -> None:
        """None: it learns from its own episodes."""
        return None

    @property
    def max_new_tokens(self) -> None:
        """None: an action is no text."""
        return None

    @property
    def length(self) -> RunLength:
        """How far the run goes."""
        per_iteration = self.rollout.steps_per_iteration
        return RunLength(ENVIRONMENT_STEPS, per_iteration, self.iterations * per_iteration)
