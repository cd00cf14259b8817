"""Settings of offline learning with a critic of whole responses: `forethought train archer`."""

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
    require_value_heads,
)


@dataclass(frozen=True)
class ArcherConfig:
    """Offline ArCHer (Zhou et al. 2024): utterance-level implicit Q-learning, and behavior cloning
    weighted by advantages.

    "Code" is the published code of the paper's offline experiments, on 20 Questions.
    """

    model: PathField = path_field("tiny")
    """Where the policy starts: "tiny" (randomly initialized), a run folder, a folder of
    `save_pretrained`, or a hub id. The critic starts from it as the first phase leaves it."""

    data: PathField = path_field("data/trajectories")
    """A file or folder of trajectories (`forethought collect`)."""

    output: PathField = path_field("runs/archer")
    """The run folder."""

    seed: int = 0
    """Seed of initial weights, heads and shuffling."""

    bc_epochs: float = 1.0
    """Passes over the data in the first phase, behavior cloning; may be a fraction. 0: the model
    is a BC policy of these data already, such as a run of `train sft` on them."""

    critic_epochs: float = 1.0
    """Passes over the data in the second phase, the critic."""

    actor_epochs: float = 1.0
    """Passes over the data in the third phase: behavior cloning by advantage."""

    batch_size: int = 32
    """Episodes per optimizer step, over all processes."""

    gamma: float = 0.99
    """Discount per environment step. Code: 0.99."""

    expectile: float = 0.9
    """τ of V: 0.5 is the mean of the Q-values of the data's responses, toward 1 their maximum.
    Code: 0.9."""

    beta: float = 1.0
    """β of the weights exp(β A), per unit of return: 0 weights all responses equally, larger
    values trust the critic more. Code: 1, with returns from -20 to 0."""

    weight_cap: float = 20.0
    """No weight is above this. AWR: 20; code: no cap."""

    polyak_tau: float = 0.05
    """α of θ̄ ← (1 - α) θ̄ + α θ, of the target Q heads after every step. Code: 0.05."""

    head_learning_rate: float = 1e-3
    """Peak learning rate of the randomly initialized heads; decays as the model's does."""

    checkpoint_every: int = 200
    """Optimizer steps between checkpoints; the two newest are kept."""

    environment: EnvironmentField = environment_field()
    prompt: PromptConfig = field(default_factory=PromptConfig)
    lora: LoraConfig = field(default_factory=LoraConfig)
    optimizer: OptimizerConfig = FROM_SCRATCH
    """Settings of every phase; each has a schedule of its own."""
    compute: ComputeConfig = field(default_factory=ComputeConfig)

    max_new_tokens = samples_nothing
    length = data_decide

    def __post_init__(self) -> None:
        settle(self)
        require_offline(self)
        require(self.bc_epochs >= 0, "bc_epochs", self.bc_epochs, "0 or more")
        require_value_heads(expectile=self.expectile, head_learning_rate=self.head_learning_rate)
        require(self.critic_epochs > 0, "critic_epochs", self.critic_epochs, "above 0")
        require(self.actor_epochs > 0, "actor_epochs", self.actor_epochs, "above 0")
        require(0 <= self.beta < math.inf, "beta", self.beta, "0 or more")
        require(1 <= self.weight_cap < math.inf, "weight_cap", self.weight_cap, "1 or more")
