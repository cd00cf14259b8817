"""Settings of supervised fine-tuning: `forethought train sft`."""

from dataclasses import dataclass, field

from forethought.configs.contract import (
    UPDATES,
    EnvironmentField,
    OptionalPathField,
    PathField,
    RunLength,
    environment_field,
    optional_path_field,
    path_field,
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
    require_common,
)


@dataclass(frozen=True)
class SFTConfig:
    """Supervised fine-tuning on an expert's responses (cross-entropy per token)."""

    model: PathField = path_field("tiny")
    """"tiny" (randomly initialized), a run folder, a folder of `save_pretrained`, or a hub id."""

    output: PathField = path_field("runs/sft")
    """The run folder."""

    seed: int = 0
    """Seed of initial weights, demonstrations and shuffling."""

    expert_steps: int = 20000
    """Expert steps to learn from. RL4VLM: 20,000 (NumberLine), 50,000 (other card games)."""

    action_noise: float = 0.0
    """Share of the expert's steps at which the environment gets another action, drawn from those
    that the episode has offered; learned is how the expert goes on, not the slip (DART)."""

    dagger_data: OptionalPathField = optional_path_field()
    """A file or folder of episodes that a policy played (`forethought collect`): what the expert
    would have answered in their states is learned beside the demonstrations (DAgger)."""

    data: OptionalPathField = optional_path_field()
    """A file or folder of trajectories (`forethought collect`) to learn from instead."""

    filter_top_fraction: float = 1.0
    """Share of the stored episodes that is learned from, those with the highest returns:
    filtered behavior cloning, as a rule 0.1. 1: all."""

    observation_loss_weight: float = 0.0
    """Weight of a token of the observations beside one of a response, where a conversation is one
    row: above 0 the model also learns what the environment will say (implicit world modeling)."""

    epochs: float = 1.0
    """Passes over the demonstrations; may be a fraction. RL4VLM: 1."""

    batch_size: int = 32
    """Responses per optimizer step, over all processes; on average if conversations are whole."""

    checkpoint_every: int = 200
    """Optimizer steps between checkpoints; the two newest are kept."""

    environment: EnvironmentField = environment_field()
    prompt: PromptConfig = field(default_factory=PromptConfig)
    lora: LoraConfig = field(default_factory=LoraConfig)
    optimizer: OptimizerConfig = FROM_SCRATCH
    compute: ComputeConfig = field(default_factory=ComputeConfig)

    max_new_tokens = samples_nothing

    def __post_init__(self) -> None:
        settle(self)
        require_common(self.seed, self.checkpoint_every)
        require(self.expert_steps >= 1, "expert_steps", self.expert_steps, "1 or more")
        require(self.epochs > 0, "epochs", self.epochs, "above 0")
        require(self.batch_size >= 1, "batch_size", self.batch_size, "1 or more")
        share, is_stored = self.filter_top_fraction, self.data is not None
        require(0 < share <= 1, "filter_top_fraction", share, "above 0, at most 1")
        require(
            share == 1 or is_stored, "filter_top_fraction", share, "1 without data to choose from"
        )
        require(
            self.observation_loss_weight >= 0,
            "observation_loss_weight",
            self.observation_loss_weight,
            "0 or more",
        )
        require(0 <= self.action_noise < 1, "action_noise", self.action_noise, "0 or more, below 1")
        require(
            not (self.action_noise and is_stored),
            "action_noise",
            self.action_noise,
            "0 with stored data",
        )
        corrections = self.dagger_data
        is_asked = corrections is not None
        require(not (is_asked and is_stored), "dagger_data", corrections, "none with stored data")
        levels = self.prompt.return_bins
        require(levels == 0 or is_stored, "prompt.return_bins", levels, "0 without data to rank")

    def updates(self, responses: int) -> int:
        """Optimizer steps on so many responses; at least one."""
        return max(1, round(self.epochs * responses / self.batch_size))

    @property
    def total_updates(self) -> int | None:
        """Optimizer steps of the whole run; None where stored episodes decide how many."""
        if self.data is not None or self.dagger_data is not None:
            return None
        return self.updates(self.expert_steps)

    @property
    def length(self) -> RunLength:
        """How far the run goes."""
        return RunLength(UPDATES, total=self.total_updates)
