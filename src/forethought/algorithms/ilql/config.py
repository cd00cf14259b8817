"""Settings of offline value learning with heads: `forethought train ilql`."""

import math
from dataclasses import dataclass, field
from typing import Literal

from forethought.configs.acting import ValueActingConfig
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
class ILQLConfig:
    """ILQL (Snell et al. 2023), and the baselines that differ from it in the target alone.

    Two models: π_φ, a BC policy of the data, and a copy of it with two Q heads and a V head.
    """

    model: PathField = path_field("tiny")
    """Where π_φ starts: "tiny" (randomly initialized), a run folder, a folder of
    `save_pretrained`, or a hub id. The values start from π_φ as the first phase leaves it."""

    data: PathField = path_field("data/trajectories")
    """A file or folder of trajectories (`forethought collect`)."""

    output: PathField = path_field("runs/ilql")
    """The run folder."""

    seed: int = 0
    """Seed of initial weights, heads and shuffling."""

    targets: Literal["expectile", "maximum", "monte_carlo"] = "expectile"
    """Target of Q: r + γ V(s') with V an expectile of the data's own Q (ILQL);
    r + γ max_a Q(s', a), which is Q-learning and needs a larger `cql_weight` (CQL); or the
    return that followed in the data (Monte-Carlo regression)."""

    support_min_probability: float = 0.0
    """The maximum of `targets: maximum` is over tokens to which π_φ gives at least this
    probability. Other tokens' values are guesses, and the best of many guesses is too high, token
    after token. 0: over all (CQL); above: as batch-constrained Q-learning (Fujimoto et al. 2019)
    has it."""

    bc_epochs: float = 1.0
    """Passes over the data in the first phase; may be a fraction. 0: the model is π_φ
    already, such as a run of `train sft` on these data."""

    epochs: float = 1.0
    """Passes over the data in the second phase."""

    batch_size: int = 32
    """Episodes per optimizer step, over all processes."""

    gamma: float = 0.99
    """Discount per environment step. ILQL: 0.99."""

    utterance_gamma: Literal["one", "gamma"] = "one"
    """Discount between the tokens of an utterance: none, or γ for them, too (ILQL's code)."""

    expectile: float = 0.7
    """τ of V: 0.5 is the mean of the data's Q, toward 1 their maximum. ILQL: 0.7."""

    cql_weight: float = 0.01
    """Weight of the term that lowers Q of tokens that the data do not hold. ILQL: 0.01 (language
    games), 1 (chess)."""

    polyak_tau: float = 0.005
    """α of θ̄ ← (1 - α) θ̄ + α θ, of the target Q heads after every step. ILQL: 0.005."""

    head_learning_rate: float = 1e-3
    """Peak learning rate of the randomly initialized heads; decays as the model's does."""

    checkpoint_every: int = 200
    """Optimizer steps between checkpoints; the two newest are kept."""

    acting: ValueActingConfig = field(default_factory=ValueActingConfig)
    environment: EnvironmentField = environment_field()
    prompt: PromptConfig = field(default_factory=PromptConfig)
    lora: LoraConfig = field(default_factory=LoraConfig)
    optimizer: OptimizerConfig = FROM_SCRATCH
    """Settings of either phase; each has a schedule of its own."""
    compute: ComputeConfig = field(default_factory=ComputeConfig)

    max_new_tokens = samples_nothing
    length = data_decide

    def __post_init__(self) -> None:
        settle(self)
        require_offline(self)
        require(self.bc_epochs >= 0, "bc_epochs", self.bc_epochs, "0 or more")
        require_value_heads(expectile=self.expectile, head_learning_rate=self.head_learning_rate)
        require(self.epochs > 0, "epochs", self.epochs, "above 0")
        least = self.support_min_probability
        require(0 <= least < 1, "support_min_probability", least, "0 up to 1")
        is_maximum, expected = self.targets == "maximum", "0 unless targets is maximum"
        require(least == 0 or is_maximum, "support_min_probability", least, expected)
        weight = self.cql_weight
        require(0 <= weight < math.inf, "cql_weight", weight, "0 or more")
