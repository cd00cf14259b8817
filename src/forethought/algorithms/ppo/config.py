"""Settings of λ-PPO: `forethought train ppo`."""

import math
from dataclasses import dataclass, field
from typing import Literal

from forethought.configs.acting import GenerationConfig
from forethought.configs.contract import (
    ENVIRONMENT_STEPS,
    EnvironmentField,
    PathField,
    RunLength,
    environment_field,
    longest_of_rollout,
    path_field,
    settle,
)
from forethought.configs.parts import (
    ComputeConfig,
    LoraConfig,
    OptimizerConfig,
    PromptConfig,
    RolloutConfig,
    require,
    require_common,
)


@dataclass(frozen=True)
class PPOConfig:
    """λ-PPO: reinforcement learning of thoughts and actions (RL4VLM)."""

    model: PathField = path_field("runs/sft")
    """Where to start: a run folder (its newest checkpoint), a folder of `save_pretrained`,
    a hub id, or "tiny" (randomly initialized)."""

    output: PathField = path_field("runs/ppo")
    """The run folder."""

    seed: int = 0
    """Seed of episodes, responses, shuffling and the critic's initial weights."""

    total_steps: int = 15360
    """Environment steps in all. RL4VLM: 15,000 (cards), 5,000 (ALFWorld)."""

    thought_weight: float = 0.5
    """λ of RL4VLM's Eq. 4.3: log π(response) = λ log π(thoughts) + log π(action | thoughts).
    0.5 on cards, 0.2 on ALFWorld; 0 trains the action alone, 1 is the plain sum."""

    ratio: Literal["step", "token"] = "step"
    """One probability ratio per environment step (RL4VLM), or one per token."""

    loss_aggregation: Literal["token_mean", "sequence_mean", "sequence_sum"] = "token_mean"
    """Aggregation of ratios per token: their mean over the batch, in which long responses weigh
    more; the mean over responses of each one's mean (GRPO); or of each one's sum (Dr. GRPO)."""

    gamma: float = 0.9
    """Discount per environment step."""

    advantage: Literal["gae", "rloo", "grpo", "dr_grpo", "reinforce_plus_plus", "gigpo"] = "gae"
    """What a step is worth: "gae" asks a critic (RL4VLM); the others have none and compare
    whole episodes: "rloo", "grpo", "dr_grpo" and "gigpo" those of one start,
    "reinforce_plus_plus" all of an iteration. The critic's settings then have no effect."""

    group_size: int = 1
    """Episodes that start from the same seed, in as many slots; 2 or more where they are
    compared. GRPO: 64, GiGPO: 8."""

    step_advantage_weight: float = 1.0
    """ω of GiGPO: weight of a step's advantage in its state, beside its episode's. Paper: 1."""

    gae_lambda: float = 0.95
    """λ of generalized advantage estimation; not the λ of the thoughts."""

    clip: float = 0.1
    """The ratio of new to old probability counts only within this distance of 1."""

    value_clip: float | None = 0.1
    """A critic's estimate counts only within this distance of what it was in the rollout, in
    standard deviations of the returns; null: wherever it is. RL4VLM: 0.1, in units of return."""

    value_coefficient: float = 0.5
    """Weight of the critic's loss."""

    critic_gradient: Literal["model", "head"] = "model"
    """How far the critic's error is passed on: into the whole model (RL4VLM), or into the
    value head alone, which cannot pull the model away from what it responses."""

    critic_warmup: int = 0
    """Iterations in which the critic alone learns: before it has seen returns, advantages blame
    an episode's early steps for being far from its reward."""

    critic_learning_rate: float = 3e-3
    """Peak learning rate of the value head, which is randomly initialized; decays as the
    model's does. RL4VLM uses one rate for both."""

    entropy_coefficient: float = 0.0
    """Weight of the mean token entropy, as a bonus. RL4VLM's code reads 0.01 but never uses it."""

    kl_coefficient: float = 0.0
    """Weight of the divergence from the model that the run started from, per token; 0 keeps
    no such model. GRPO: 0.04."""

    kl_use: Literal["loss", "reward"] = "loss"
    """Where the divergence counts: in the loss (GRPO), or as a penalty in every step's reward
    (InstructGPT), which the discount then spreads over the steps before."""

    consistency_coefficient: float = 0.0
    """κ of InteractiveCOT's Eq. 7 (APC): weight of how far the probability of the actions, given
    their thoughts, has moved from that of the model that the run started from. 0: off."""

    epochs: int = 4
    """Passes over each iteration's steps."""

    batch_size: int = 512
    """Environment steps per optimizer step, over all processes. RL4VLM: 512 (cards), 256
    (ALFWorld)."""

    checkpoint_every: int = 5
    """Iterations between checkpoints; the two newest are kept."""

    environment: EnvironmentField = environment_field()
    prompt: PromptConfig = field(default_factory=PromptConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    lora: LoraConfig = field(default_factory=LoraConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    compute: ComputeConfig = field(default_factory=ComputeConfig)
    generation: GenerationConfig = field(default_factory=GenerationConfig)

    max_new_tokens = longest_of_rollout

    def __post_init__(self) -> None:
        settle(self)
        require_common(self.seed, self.checkpoint_every)
        per_iteration = self.rollout.steps_per_iteration
        expected = f"at least rollout.steps_per_iteration ({per_iteration})"
        require(self.total_steps >= per_iteration, "total_steps", self.total_steps, expected)
        require(0 <= self.thought_weight <= 1, "thought_weight", self.thought_weight, "0 to 1")
        aggregation, is_alone = self.loss_aggregation, self.ratio == "step"
        expected = "token_mean with ratio step, which has one element per answer"
        is_mean = aggregation == "token_mean"
        require(is_mean or not is_alone, "loss_aggregation", aggregation, expected)
        require(0 <= self.gamma <= 1, "gamma", self.gamma, "0 to 1")
        require(0 <= self.gae_lambda <= 1, "gae_lambda", self.gae_lambda, "0 to 1")
        size, slots, advantage = self.group_size, self.rollout.num_envs, self.advantage
        if advantage == "gae":
            require(size == 1, "group_size", size, "1 with advantage gae, which compares no groups")
        elif advantage != "reinforce_plus_plus":
            require(size >= 2, "group_size", size, f"2 or more with advantage {advantage}")
        is_divisor = size >= 1 and slots % size == 0
        require(is_divisor, "group_size", size, f"a divisor of rollout.num_envs ({slots})")
        weight = self.step_advantage_weight
        require(0 <= weight < math.inf, "step_advantage_weight", weight, "0 or more")
        require(0 < self.clip < 1, "clip", self.clip, "between 0 and 1")
        reach = self.value_clip
        require(reach is None or reach > 0, "value_clip", reach, "above 0, or null")
        coefficient = self.value_coefficient
        require(coefficient >= 0, "value_coefficient", coefficient, "0 or more")
        warmup = self.critic_warmup
        expected = f"0 to {self.iterations - 1}, one less than the iterations"
        require(0 <= warmup < self.iterations, "critic_warmup", warmup, expected)
        rate = self.critic_learning_rate
        require(0 < rate <= 0.1, "critic_learning_rate", rate, "above 0, at most 0.1")
        bonus = self.entropy_coefficient
        require(bonus >= 0, "entropy_coefficient", bonus, "0 or more")
        pull = self.kl_coefficient
        require(0 <= pull < math.inf, "kl_coefficient", pull, "0 or more")
        pull = self.consistency_coefficient
        require(0 <= pull < math.inf, "consistency_coefficient", pull, "0 or more")
        require(self.epochs >= 1, "epochs", self.epochs, "1 or more")
        expected = f"1 to rollout.steps_per_iteration ({per_iteration})"
        require(1 <= self.batch_size <= per_iteration, "batch_size", self.batch_size, expected)

    @property
    def has_reference(self) -> bool:
        """Whether the policy is held to the model that the run started from."""
        return self.kl_coefficient > 0 or self.consistency_coefficient > 0

    @property
    def has_critic(self) -> bool:
        """Whether the model judges states, too."""
        return self.advantage == "gae"

    @property
    def iterations(self) -> int:
        """Rounds of collecting and updating; without a critic, at most."""
        return self.total_steps // self.rollout.steps_per_iteration

    def has_next_iteration(self, played: int) -> bool:
        """Whether there is another iteration behind so many environment steps.

        Without a critic, iterations are whole episodes and take more steps than they ask for:
        none begins that could not keep within `total_steps`.
        """
        return played + self.rollout.steps_per_iteration <= self.total_steps

    @property
    def updates_per_iteration(self) -> int:
        """Optimizer steps between two collections."""
        return self.epochs * math.ceil(self.rollout.steps_per_iteration / self.batch_size)

    @property
    def scores_in_update(self) -> bool:
        """Whether the log-probs and values of before the update are those of its own forward pass:
        there is one update between two collections. Engines' log-probs are compared before it."""
        return self.updates_per_iteration == 1 and not self.generation.engine

    @property
    def data(self) -> None:
        """None: it learns from its own episodes."""
        return None

    @property
    def length(self) -> RunLength:
        """How far the run goes."""
        return RunLength(ENVIRONMENT_STEPS, self.rollout.steps_per_iteration, self.total_steps)
