"""Settings of Q-learning by supervised fine-tuning: `forethought train q-sft`."""

import math
from dataclasses import dataclass, field
from typing import Literal

from forethought.configs.acting import ActingConfig, SupportConfig
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
class QSFTConfig:
    """Q-SFT (Hong et al. 2024): offline reinforcement learning by weighted cross-entropy.

    Two models: π_φ is a BC policy of the data; the probabilities of p_θ are values. The defaults
    are the exact variant; `configs/q_sft_paper.yaml` is the paper variant.
    """

    model: PathField = path_field("tiny")
    """Where π_φ starts: "tiny" (randomly initialized), a run folder, a folder of
    `save_pretrained`, or a hub id. p_θ starts from π_φ as the first phase leaves it."""

    data: PathField = path_field("data/trajectories")
    """A file or folder of trajectories (`forethought collect`)."""

    output: PathField = path_field("runs/q_sft")
    """The run folder."""

    seed: int = 0
    """Seed of initial weights and shuffling."""

    phases: Literal["two", "joint"] = "two"
    """π_φ first and then p_θ (the paper's Algorithm 1), or both in every step (its code), without
    the first phase."""

    bc_epochs: float = 1.0
    """Passes over the data in the first phase; may be a fraction. 0: the model is π_φ already,
    such as a run of `train sft` on all of these data. With a model of other data, or of the best
    of these, p/π is not a value."""

    mc_epochs: float = 0.0
    """Passes before the last phase in which p_θ learns what each action brought in the data.
    At first p_θ says that everything is worth the same, and it takes long until the rewards have
    come all the way; after these passes it says what the data's policy gets. 0: the paper."""

    epochs: float = 1.0
    """Passes over the data in the second phase, or of both models together."""

    batch_size: int = 32
    """Episodes per optimizer step, over all processes. Public code: 32."""

    gamma: float = 1.0
    """Discount per environment step. Public code: 1."""

    utterance_gamma: Literal["one", "gamma"] = "one"
    """Discount between the tokens of an utterance: none, or γ for them, too."""

    return_normalization: Literal["data", "step"] = "data"
    """Which returns-to-go become probabilities of 0 and 1: the lowest and highest of all, or of
    each step of an episode. Where an episode ends after so many steps, and tells how many are
    left, returns from the last ones on differ by little on the scale of the whole."""

    return_min: float | None = None
    """Return, in the environment's units, that becomes a probability of 0. Without it the data's
    own reward_map.json, or else the lowest return-to-go in the data."""

    return_max: float | None = None
    """The same of 1. Both, or neither."""

    residual_mass: Literal["token", "spread"] = "token"
    """Where the weight goes that a token is not worth: to a token that no data hold, which
    makes p = π Q* (Sec. 4.1), or in equal parts to all others (Eq. 3)."""

    action_set: Literal["vocabulary", "legal"] = "vocabulary"
    """What is open in a state: every token, or those that go on towards an action of the
    environment (environments with a fixed list, and --prompt.format action_only)."""

    backup: Literal["token", "utterance"] = "token"
    """How far a value goes back at a time: one token (the paper), or the whole response, inside
    which each next state is known for sure. The same fixed point, reached sooner."""

    backup_beta: float | None = None
    """What a state is worth: its best supported token (null, the paper), or what the policy
    that acts with this β gets there. The best of many noisy values is above the truth, token
    after token; 0, what the data's own policy gets, never is."""

    polyak_tau: float = 0.005
    """α of θ̄ ← (1 - α) θ̄ + α θ, after every step. Public code: 0.005."""

    checkpoint_every: int = 200
    """Optimizer steps between checkpoints; the two newest are kept."""

    support: SupportConfig = field(default_factory=SupportConfig)
    acting: ActingConfig = field(default_factory=ActingConfig)
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
        require(self.epochs > 0, "epochs", self.epochs, "above 0")
        known = self.mc_epochs
        require(0 <= known < math.inf, "mc_epochs", known, "0 or more")
        sharp = self.backup_beta
        require(sharp is None or 0 <= sharp < math.inf, "backup_beta", sharp, "0 or more, or null")
        require_return_range(self.return_min, self.return_max)
        is_data, expected = self.return_normalization == "data", "data, where a range is declared"
        is_fine = is_data or self.return_min is None
        require(is_fine, "return_normalization", self.return_normalization, expected)
        is_legal, answers = self.action_set == "legal", self.prompt.format
        expected = "action_only with action_set legal"
        require(not is_legal or answers == "action_only", "prompt.format", answers, expected)
