"""Settings of autoregressive Q-learning: `forethought train q-transformer`."""

import math
from dataclasses import dataclass, field

from forethought.configs.contract import (
    EnvironmentField,
    PathField,
    data_decide,
    environment_field,
    path_field,
    require_offline,
    samples_nothing,
    settle,
)
from forethought.configs.parts import (
    FROM_SCRATCH,
    ComputeConfig,
    LoraConfig,
    OptimizerConfig,
    PromptConfig,
    require,
    require_return_range,
)


@dataclass(frozen=True)
class QTransformerConfig:
    """Q-Transformer (Chebotar et al. 2023): Q-learning in which every token is an action.

    One model, whose logits are log-odds of values, and its target network.
    """

    model: PathField = path_field("tiny")
    """Where Q starts: "tiny" (randomly initialized), a run folder, a folder of `save_pretrained`,
    or a hub id. Logits of a language model say that its likely tokens are worth most."""

    data: PathField = path_field("data/trajectories")
    """A file or folder of trajectories (`forethought collect`)."""

    output: PathField = path_field("runs/q_transformer")
    """The run folder."""

    seed: int = 0
    """Seed of initial weights and shuffling."""

    epochs: float = 1.0
    """Passes over the data; may be a fraction."""

    batch_size: int = 32
    """Episodes per optimizer step, over all processes."""

    gamma: float = 0.98
    """Discount per environment step; none between the tokens of an action. Paper: 0.98."""

    conservative_weight: float = 1.0
    """α of the term that pulls the values of tokens that were not taken to 0. Paper: 1."""

    return_min: float | None = None
    """Return, in the environment's units, that is a value of 0. Without it the lowest
    return-to-go in the data."""

    return_max: float | None = None
    """The same of 1. Both, or neither."""

    polyak_tau: float = 0.01
    """θ̄ ← (1 - τ) θ̄ + τ θ, of the target network after every step."""

    checkpoint_every: int = 200
    """Optimizer steps between checkpoints; the two newest are kept."""

    environment: EnvironmentField = environment_field()
    prompt: PromptConfig = field(default_factory=PromptConfig)
    lora: LoraConfig = field(default_factory=LoraConfig)
    optimizer: OptimizerConfig = FROM_SCRATCH
    compute: ComputeConfig = field(default_factory=ComputeConfig)

    max_new_tokens = samples_nothing
    length = data_decide

    def __post_init__(self) -> None:
        settle(self)
        require_offline(self)
        require(self.epochs > 0, "epochs", self.epochs, "above 0")
        weight = self.conservative_weight
        require(0 <= weight < math.inf, "conservative_weight", weight, "0 or more")
        require_return_range(self.return_min, self.return_max)
