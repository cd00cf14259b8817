"""Settings of autoregressive Q-learning: `forethought train q-transformer`."""

import math
from dataclasses import dataclass, field

from forethought.configs.contract import (
    UPDATES,
    EnvironmentField,
    PathField,
    RunLength,
    environment_field,
    path_field,
    settle,
)
from forethought.configs.parts import (
    ComputeConfig,
    LoraConfig,
    OptimizerConfig,
    PromptConfig,
    require,
    require_common,
    require_offline,
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
    optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(
            learning_rate=1e-3, final_learning_rate=1e-5, warmup_steps=20, epsilon=1e-8
        )
    )
    compute: ComputeConfig = field(default_factory=ComputeConfig)

    def __post_init__(self) -> None:
        settle(self)
        require_common(self.seed, self.checkpoint_every)
        require_offline(
            bc_epochs=0.0,
            batch_size=self.batch_size,
            gamma=self.gamma,
            polyak_tau=self.polyak_tau,
            return_bins=self.prompt.return_bins,
        )
        require(self.epochs > 0, "epochs", self.epochs, "above 0")
        weight = self.conservative_weight
        require(0 <= weight < math.inf, "conservative_weight", weight, "0 or more")
        low, high = self.return_min, self.return_max
        if low is None or high is None:
            require(low is high, "return_min and return_max", (low, high), "both or neither")
        else:
            require(low < high, "return_max", high, f"above return_min ({low:g})")

    @property
    def max_new_tokens(self) -> None:
        """None: it samples nothing."""
        return None

    @property
    def length(self) -> RunLength:
        """How far the run goes: the data decide."""
        return RunLength(UPDATES)
