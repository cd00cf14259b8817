"""What a person may set. Every field says what it does; every value is checked when set."""

import math
from dataclasses import dataclass, field
from typing import Literal

from forethought.errors import ConfigError

AnswerFormat = Literal["thoughts", "action_only"]
"""With the fields that come before the action, or the action alone."""


def require(condition: bool, name: str, value: object, expected: str) -> None:
    """Refuses a setting.

    Raises:
        ConfigError: naming the field, the value it has and the values it may have.
    """
    if not condition:
        raise ConfigError(f"{name} is {value!r} — expected {expected}")


@dataclass(frozen=True)
class EnvironmentConfig:
    """Which world is played."""

    id: str = "NumberLine"
    """Name of a world (`forethought envs` lists them), or `package.module:Class` of your own."""

    image_size: int | None = None
    """Pixels on a side of the square image; by default 64 for the tiny model, 300 otherwise."""

    options: tuple[str, ...] = ()
    """Further options of the world as `name=value`, e.g. `rules=reference`."""

    workers: int = 0
    """Processes that host environments; 0 keeps them in this process (fast worlds), where
    equal seeds give equal bits; processes reply in any order, which changes the last bits."""

    def __post_init__(self) -> None:
        size = self.image_size
        require(size is None or 32 <= size <= 2048, "environment.image_size", size, "32 to 2048")
        require(0 <= self.workers <= 256, "environment.workers", self.workers, "0 to 256")
        for option in self.options:
            require("=" in option, "environment.options", option, "name=value")


@dataclass(frozen=True)
class PromptConfig:
    """What the agent is told, and in which form it answers."""

    format: AnswerFormat = "thoughts"
    """Thoughts before the action, or the action alone."""

    wording: Literal["short", "paper"] = "short"
    """The published prompt, or one of a quarter of its length."""


@dataclass(frozen=True)
class LoraConfig:
    """Low-rank adapters instead of full fine-tuning."""

    components: tuple[Literal["vision_tower", "projector", "language_model"], ...] = ()
    """Parts of the model that get adapters; none means that all weights are trained."""

    rank: int = 128
    """Of the adapter matrices. RL4VLM: 128."""

    alpha: int = 256
    """The adapters' output is scaled by alpha / rank. RL4VLM: 256."""

    dropout: float = 0.05
    """On the adapters' input, during supervised fine-tuning only: reinforcement learning
    scores without dropout. RL4VLM: 0.05."""

    def __post_init__(self) -> None:
        require(1 <= self.rank <= 1024, "lora.rank", self.rank, "1 to 1024")
        require(self.alpha > 0, "lora.alpha", self.alpha, "above 0")
        require(0 <= self.dropout < 1, "lora.dropout", self.dropout, "0 up to 1")


@dataclass(frozen=True)
class OptimizerConfig:
    """How the weights move (Adam)."""

    learning_rate: float = 1e-5
    """At its highest. RL4VLM: 1e-5; a model trained from scratch wants 1e-4 to 1e-3."""

    final_learning_rate: float = 1e-9
    """At the end of the schedule. RL4VLM: 1e-9."""

    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    """Shape of the decay from the first to the second."""

    warmup_steps: int = 0
    """Optimiser steps over which the learning rate rises from zero."""

    epsilon: float = 1e-7
    """Added to the root of the second moment. RL4VLM: 1e-7."""

    max_gradient_norm: float = 1.0
    """Gradients are scaled down to this length. RL4VLM's code: 0.01."""

    def __post_init__(self) -> None:
        rate = self.learning_rate
        hint = "" if rate <= 0.1 else f"; did you mean {rate}e-5?"
        require(0 < rate <= 0.1, "optimizer.learning_rate", rate, "above 0, at most 0.1" + hint)
        final = self.final_learning_rate
        expected = f"0 to learning_rate ({rate:g})"
        require(0 <= final <= rate, "optimizer.final_learning_rate", final, expected)
        require(self.warmup_steps >= 0, "optimizer.warmup_steps", self.warmup_steps, "0 or more")
        require(self.epsilon > 0, "optimizer.epsilon", self.epsilon, "above 0")
        norm = self.max_gradient_norm
        require(norm > 0, "optimizer.max_gradient_norm", norm, "above 0")


@dataclass(frozen=True)
class ComputeConfig:
    """How the work is laid on the machine. Changes speed and memory, never what is learned."""

    micro_batch_tokens: int = 8192
    """Tokens, padding included, in one forward and backward pass; gradients accumulate."""

    precision: Literal["fp32", "bf16"] = "fp32"
    """Of the forward pass; weights, log-probs and losses stay fp32."""

    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, a third more time."""

    threads: int | None = None
    """CPU threads of PyTorch; by default as many as this process may use."""

    def __post_init__(self) -> None:
        tokens = self.micro_batch_tokens
        require(tokens >= 64, "compute.micro_batch_tokens", tokens, "64 or more")
        threads = self.threads
        require(threads is None or threads >= 1, "compute.threads", threads, "1 or more")


@dataclass(frozen=True)
class RolloutConfig:
    """How experience is gathered."""

    slots: int = 64
    """Environments played at the same time, over all processes."""

    steps_per_iteration: int = 512
    """Environment steps between two updates. RL4VLM: 512 (NumberLine, Blackjack), 1024 else.
    Without a critic at least so many: whole episodes, one from every slot until it is enough."""

    temperature: float = 0.2
    """Sampling temperature; log-probs are recorded at it. RL4VLM: 0.2."""

    max_new_tokens: int = 128
    """Longest answer. RL4VLM: 256."""

    on_invalid: Literal["random", "penalise"] = "random"
    """An answer without a valid action: draw one uniformly (RL4VLM, Eq. 4.1), or let the
    world penalise it."""

    def __post_init__(self) -> None:
        require(self.slots >= 1, "rollout.slots", self.slots, "1 or more")
        steps = self.steps_per_iteration
        expected = f"a positive multiple of rollout.slots ({self.slots})"
        is_multiple = steps > 0 and steps % self.slots == 0
        require(is_multiple, "rollout.steps_per_iteration", steps, expected)
        require(self.temperature > 0, "rollout.temperature", self.temperature, "above 0")
        longest = self.max_new_tokens
        require(longest >= 1, "rollout.max_new_tokens", longest, "1 or more")


@dataclass(frozen=True)
class SFTConfig:
    """Supervised fine-tuning on an expert's answers (cross-entropy per token)."""

    model: str = "tiny"
    """"tiny" (made from nothing), a run folder, a folder of `save_pretrained`, or a hub id."""

    output: str = "runs/sft"
    """The run folder."""

    seed: int = 0
    """Of initial weights, demonstrations and shuffling."""

    demonstrations: int = 20000
    """Expert steps to learn from. RL4VLM: 20,000 (NumberLine), 50,000 (other card games)."""

    data: str | None = None
    """A file or folder of trajectories (`forethought collect`) to learn from instead."""

    epochs: float = 1.0
    """Passes over the demonstrations; may be a fraction. RL4VLM: 1."""

    batch_size: int = 32
    """Answers per optimiser step, over all processes."""

    checkpoint_every: int = 200
    """Optimiser steps between checkpoints; the two newest are kept."""

    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    prompt: PromptConfig = field(default_factory=PromptConfig)
    lora: LoraConfig = field(default_factory=LoraConfig)
    optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(
            learning_rate=1e-3, final_learning_rate=1e-5, warmup_steps=20, epsilon=1e-8
        )
    )
    compute: ComputeConfig = field(default_factory=ComputeConfig)

    def __post_init__(self) -> None:
        _require_common(self.seed, self.checkpoint_every)
        require(self.demonstrations >= 1, "demonstrations", self.demonstrations, "1 or more")
        require(self.epochs > 0, "epochs", self.epochs, "above 0")
        require(self.batch_size >= 1, "batch_size", self.batch_size, "1 or more")

    @property
    def total_updates(self) -> int:
        """Optimiser steps, where the expert's demonstrations are the data."""
        return math.ceil(self.epochs * self.demonstrations / self.batch_size)


@dataclass(frozen=True)
class PPOConfig:
    """λ-PPO: reinforcement learning of thoughts and actions (RL4VLM)."""

    model: str = "runs/sft"
    """Where to start: a run folder (its newest checkpoint), a folder of `save_pretrained`,
    a hub id, or "tiny" (made from nothing)."""

    output: str = "runs/ppo"
    """The run folder."""

    seed: int = 0
    """Of episodes, answers, shuffling and the critic's initial weights."""

    total_steps: int = 15360
    """Environment steps in all. RL4VLM: 15,000 (cards), 5,000 (ALFWorld)."""

    thought_weight: float = 0.5
    """λ of RL4VLM's Eq. 4.3: log π(answer) = λ log π(thoughts) + log π(action | thoughts).
    0.5 on cards, 0.2 on ALFWorld; 0 trains the action alone, 1 is the plain sum."""

    ratio: Literal["step", "token"] = "step"
    """One probability ratio per environment step (RL4VLM), or one per token."""

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
    """Of generalised advantage estimation; not the λ of the thoughts."""

    clip: float = 0.1
    """The ratio of new to old probability counts only within this distance of 1."""

    value_clip: float | None = 0.1
    """A critic's estimate counts only within this distance of what it was in the rollout;
    null: wherever it is. RL4VLM: 0.1, which is little where returns are far apart."""

    value_coefficient: float = 0.5
    """Weight of the critic's loss."""

    critic_gradient: Literal["model", "head"] = "model"
    """How far the critic's error is passed on: into the whole model (RL4VLM), or into the
    value head alone, which cannot pull the model away from what it answers."""

    critic_learning_rate: float = 1e-3
    """Of the value head, which starts from nothing whatever the model has learned; decays
    as the model's own rate does. RL4VLM uses one rate for both."""

    entropy_coefficient: float = 0.0
    """Weight of the mean token entropy, as a bonus. RL4VLM's code reads 0.01 but never uses it."""

    epochs: int = 4
    """Passes over each iteration's steps."""

    batch_size: int = 512
    """Environment steps per optimiser step, over all processes. RL4VLM: 512 (cards), 256
    (ALFWorld)."""

    checkpoint_every: int = 5
    """Iterations between checkpoints; the two newest are kept."""

    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    prompt: PromptConfig = field(default_factory=PromptConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    lora: LoraConfig = field(default_factory=LoraConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    compute: ComputeConfig = field(default_factory=ComputeConfig)

    def __post_init__(self) -> None:
        _require_common(self.seed, self.checkpoint_every)
        per_iteration = self.rollout.steps_per_iteration
        expected = f"at least rollout.steps_per_iteration ({per_iteration})"
        require(self.total_steps >= per_iteration, "total_steps", self.total_steps, expected)
        require(0 <= self.thought_weight <= 1, "thought_weight", self.thought_weight, "0 to 1")
        require(0 <= self.gamma <= 1, "gamma", self.gamma, "0 to 1")
        require(0 <= self.gae_lambda <= 1, "gae_lambda", self.gae_lambda, "0 to 1")
        size, slots, advantage = self.group_size, self.rollout.slots, self.advantage
        if advantage == "gae":
            require(size == 1, "group_size", size, "1 with advantage gae, which compares no groups")
        elif advantage != "reinforce_plus_plus":
            require(size >= 2, "group_size", size, f"2 or more with advantage {advantage}")
        is_divisor = size >= 1 and slots % size == 0
        require(is_divisor, "group_size", size, f"a divisor of rollout.slots ({slots})")
        weight = self.step_advantage_weight
        require(0 <= weight < math.inf, "step_advantage_weight", weight, "0 or more")
        require(0 < self.clip < 1, "clip", self.clip, "between 0 and 1")
        reach = self.value_clip
        require(reach is None or reach > 0, "value_clip", reach, "above 0, or null")
        coefficient = self.value_coefficient
        require(coefficient >= 0, "value_coefficient", coefficient, "0 or more")
        rate = self.critic_learning_rate
        require(0 < rate <= 0.1, "critic_learning_rate", rate, "above 0, at most 0.1")
        bonus = self.entropy_coefficient
        require(bonus >= 0, "entropy_coefficient", bonus, "0 or more")
        require(self.epochs >= 1, "epochs", self.epochs, "1 or more")
        expected = f"1 to rollout.steps_per_iteration ({per_iteration})"
        require(1 <= self.batch_size <= per_iteration, "batch_size", self.batch_size, expected)

    @property
    def has_critic(self) -> bool:
        """Whether the model judges states, too."""
        return self.advantage == "gae"

    @property
    def iterations(self) -> int:
        """Rounds of collecting and updating."""
        return self.total_steps // self.rollout.steps_per_iteration

    @property
    def updates_per_iteration(self) -> int:
        """Optimiser steps between two collections."""
        return self.epochs * math.ceil(self.rollout.steps_per_iteration / self.batch_size)


def _require_common(seed: int, checkpoint_every: int) -> None:
    require(0 <= seed < 2**31, "seed", seed, "0 to 2147483647")
    require(checkpoint_every >= 1, "checkpoint_every", checkpoint_every, "1 or more")
