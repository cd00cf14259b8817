"""Settings of step-wise preference optimization: `forethought train dpo`."""

import math
from dataclasses import dataclass, field
from typing import Literal

from forethought.configs.acting import GenerationConfig
from forethought.configs.contract import (
    ENVIRONMENT_STEPS,
    EnvironmentField,
    OptionalPathField,
    PathField,
    RunLength,
    environment_field,
    longest_of_rollout,
    optional_path_field,
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

LossType = Literal[
    "sigmoid",
    "constant_action",
    "apw",
    "ipo",
    "robust",
    "rpo",
    "hinge",
    "kto",
    "simpo",
    "refuel",
    "xpo",
]
Pairing = Literal["trajectory", "matched", "branch", "mcts"]
OF_WHOLE_EPISODES: tuple[Pairing, ...] = ("trajectory", "matched")
"""Pairings that need no other steps than those of episodes played from their beginning."""
_OF_THOUGHTS = ("constant_action", "apw")
"""Objectives that train thoughts alone."""


@dataclass(frozen=True)
class DPOConfig:
    """Step-wise preference optimization of thoughts and actions, online (InteractiveCOT)."""

    model: PathField = path_field("runs/sft")
    """Where to start: a run folder (its newest checkpoint), a folder of `save_pretrained`,
    a hub id, or "tiny" (randomly initialized). It is the reference, too."""

    output: PathField = path_field("runs/dpo")
    """The run folder."""

    seed: int = 0
    """Seed of episodes, responses, choice of states and shuffling."""

    data: OptionalPathField = optional_path_field()
    """A file or folder of trajectories to take the pairs from, instead of playing; `pairing` is
    then "trajectory" or "matched", `epochs` passes are one iteration each, and nothing is
    collected."""

    total_steps: int = 15360
    """Environment steps in all, those of branches and searches included. Rounds are whole, so the
    last one may go beyond."""

    loss_type: LossType = "apw"
    """What is made of a pair: "sigmoid" (InteractiveCOT, Eq. 1), "constant_action" (Eq. 4), "apw"
    (Eq. 6, action probability weighting), or, on whole responses, "ipo", "robust", "rpo", "hinge",
    "kto" (no comparison), "simpo" (no reference), "refuel" (regression onto returns; pairs of one
    state), "xpo" (a bonus for exploration)."""

    beta: float = 0.1
    """Scale of log-ratios, per nat: the larger, the nearer to the reference. simpo: 2 to 10,
    per nat and token; refuel: units of `pair_reward` per nat."""

    consistency_coefficient: float = 0.1
    """κ of Eq. 7 (APC): weight of how far the chosen response's action has moved, in probability
    given its thoughts, from the reference's. Paper: 0.1; 0 off, 1 hurts."""

    consistency_reference: Literal["reference", "start"] = "start"
    """Whose p(a|T) APC holds the policy to: the reference's, which `ref_model_sync_every` moves on,
    or that of the model that the run started from (the paper's "pre-training results"). Without
    `ref_model_sync_every` they are the same."""

    consistency_sides: Literal["chosen", "both"] = "chosen"
    """Whose actions APC holds: the chosen responses' (Eq. 7), or the rejected ones' as well."""

    weight_gradient: Literal["detached", "full"] = "detached"
    """apw: whether p(a|T) is a number, or trained, too."""

    weight_normalization: Literal["sequence", "geometric_mean"] = "sequence"
    """apw: p(a|T) of the action's whole token sequence, or the geometric mean over its tokens."""

    weighted_reference: Literal["thoughts", "thoughts_and_action"] = "thoughts"
    """apw: what thoughts are set against: the reference's thoughts (as Eq. 6 prints it), or its
    thoughts and action (Eq. 8)."""

    label_smoothing: float = 0.1
    """robust: ε, the share of pairs that are supposed to be the wrong way round."""

    rpo_alpha: float = 0.005
    """rpo: α, weight of the chosen response's negative log-likelihood, per nat."""

    simpo_gamma: float = 1.0
    """simpo: γ, how far apart the mean log-probs are to be, times β."""

    xpo_alpha: float = 1e-3
    """xpo: α, weight of the log-likelihood of what the reference would say, per nat; 0 is DPO."""

    pair_reward: Literal["progress_delta", "progress", "reward"] = "progress_delta"
    """What a response is scored by, discounted: 50 · progress gained less invalid actions (Eq. 10),
    50 · progress reached (Eq. 10, paper variant), or the environment's own reward. Where an
    environment measures no progress, the whole goal is met at the end of a success."""

    gamma: float = 0.9
    """Discount of the score per environment step."""

    pairing: Pairing = "trajectory"
    """Which responses are compared: those of any two trajectories of the same task at the same
    step index, each on its own prefix (InteractiveCOT, Eq. 1); those of trajectories that pass the
    same state at the same step index; responses sampled again in one state and played to the end;
    or siblings of a search tree."""

    pair_group: Literal["start", "task_type"] = "start"
    """trajectory: what a task is: one start of the environment (one seed: the same game), or all
    starts of one task type, as InteractiveCOT sorts its pairs."""

    margin: float = 0.0
    """The chosen response's score exceeds the rejected one's by more than this."""

    pairs_per_state: int = 28
    """At most so many pairs of one state, or (trajectory) of one task at one step index: those
    furthest apart. 28: all pairs of 8 responses."""

    pairs_per_iteration: int = 256
    """At most so many pairs of one iteration, drawn at random, over all processes."""

    group_size: int = 8
    """trajectory, matched: episodes that start from the same seed, in as many slots."""

    branches: int = 4
    """branch: responses in one state, the one that was given there included. mcts: episodes that
    are played from a state before its actions are gone into."""

    horizon: int | None = None
    """branch: steps over which a response is scored, its own included; null: to the end of the
    episode. A short one leaves more environment steps for other states."""

    simulations: int = 8
    """mcts: episodes played for one tree, after the one it grows from."""

    exploration: float = 1.0
    """mcts: c of the upper confidence bound; 0 always goes where it was best so far."""

    ref_model_sync_every: int | None = None
    """Iterations after which the policy becomes its own reference; null: never (paper)."""

    epochs: int = 2
    """Passes over each iteration's pairs."""

    batch_size: int = 64
    """Pairs per optimizer step, over all processes."""

    checkpoint_every: int = 5
    """Iterations between checkpoints; the two newest are kept."""

    environment: EnvironmentField = environment_field()
    prompt: PromptConfig = field(default_factory=PromptConfig)
    rollout: RolloutConfig = field(default_factory=lambda: RolloutConfig(on_invalid="penalize"))
    """`temperature` is that of all log-probs, of policy and reference."""
    lora: LoraConfig = field(default_factory=LoraConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    compute: ComputeConfig = field(default_factory=ComputeConfig)
    generation: GenerationConfig = field(default_factory=GenerationConfig)

    max_new_tokens = longest_of_rollout

    def __post_init__(self) -> None:
        settle(self)
        require_common(self.seed, self.checkpoint_every)
        steps = self.rollout.steps_per_iteration
        expected = f"at least rollout.steps_per_iteration ({steps})"
        require(self.total_steps >= steps, "total_steps", self.total_steps, expected)
        engines = self.generation
        require(not engines.workers, "generation.workers", True, "false: pairs need one player")
        expected = "null: pairs have no importance weight"
        cap = engines.importance_cap
        require(cap is None, "generation.importance_cap", cap, expected)
        self._check_objective()
        self._check_pairing()
        every = self.ref_model_sync_every
        require(every is None or every >= 1, "ref_model_sync_every", every, "1 or more, or null")
        require(self.epochs >= 1, "epochs", self.epochs, "1 or more")
        expected = f"1 to pairs_per_iteration ({self.pairs_per_iteration})"
        is_fine = 1 <= self.batch_size <= self.pairs_per_iteration
        require(is_fine, "batch_size", self.batch_size, expected)

    def _check_objective(self) -> None:
        require(0 < self.beta < math.inf, "beta", self.beta, "above 0")
        pull = self.consistency_coefficient
        require(0 <= pull < math.inf, "consistency_coefficient", pull, "0 or more")
        require(
            0 <= self.label_smoothing < 0.5, "label_smoothing", self.label_smoothing, "0 up to 0.5"
        )
        weight = self.rpo_alpha
        require(0 <= weight < math.inf, "rpo_alpha", weight, "0 or more")
        margin = self.simpo_gamma
        require(0 <= margin < math.inf, "simpo_gamma", margin, "0 or more")
        bonus = self.xpo_alpha
        require(0 <= bonus < math.inf, "xpo_alpha", bonus, "0 or more")
        is_fine = self.loss_type != "refuel" or self.pairing != "trajectory"
        expected = (
            "matched, branch or mcts with loss_type refuel, which compares returns of one state"
        )
        require(is_fine, "pairing", self.pairing, expected)
        has_thoughts = self.prompt.format == "thoughts"
        expected = (
            "a loss_type of whole completions (sigmoid, ipo, …) with prompt.format action_only"
        )
        is_fine = has_thoughts or self.loss_type not in _OF_THOUGHTS
        require(is_fine, "loss_type", self.loss_type, expected)

    def _check_pairing(self) -> None:
        require(0 <= self.gamma <= 1, "gamma", self.gamma, "0 to 1")
        require(0 <= self.margin < math.inf, "margin", self.margin, "0 or more")
        require(self.pairs_per_state >= 1, "pairs_per_state", self.pairs_per_state, "1 or more")
        size, slots = self.group_size, self.rollout.num_envs
        has_groups = self.data is None and self.pairing in OF_WHOLE_EPISODES
        is_fine = size >= 1 and (slots % size == 0 or not has_groups)
        require(is_fine, "group_size", size, f"a divisor of rollout.num_envs ({slots})")
        count = self.branches
        require(2 <= count <= 64, "branches", count, "2 to 64")
        horizon, is_branch = self.horizon, self.pairing == "branch"
        is_fine = horizon is None or (horizon >= 1 and is_branch)
        require(is_fine, "horizon", horizon, "1 or more, with pairing branch; or null")
        require(self.simulations >= 1, "simulations", self.simulations, "1 or more")
        bonus = self.exploration
        require(0 <= bonus < math.inf, "exploration", bonus, "0 or more")
        is_fine = self.data is None or self.pairing in OF_WHOLE_EPISODES
        expected = "trajectory or matched with data, in which nothing is played"
        require(is_fine, "pairing", self.pairing, expected)
        is_fine = self.pair_group == "start" or self.pairing == "trajectory"
        require(is_fine, "pair_group", self.pair_group, "start without pairing trajectory")
        is_fine = self._can_pair_episodes
        require(is_fine, "group_size", size, "2 or more with pairing trajectory and group start")
        levels, expected = self.prompt.return_bins, "0 with data, whose prompts name no level"
        require(self.data is None or levels == 0, "prompt.return_bins", levels, expected)

    @property
    def _can_pair_episodes(self) -> bool:
        """Episodes that are alone in their group, all of them, would never make a pair."""
        is_alone = self.group_size == 1 and self.pair_group == "start" and self.data is None
        return not (is_alone and self.pairing == "trajectory")

    @property
    def has_apc_reference(self) -> bool:
        """Whether the start of the run is kept beside a reference that moves."""
        is_held = self.consistency_coefficient > 0 and self.consistency_reference == "start"
        return is_held and self.ref_model_sync_every is not None

    @property
    def iterations(self) -> int:
        """Rounds of collecting and updating, at most; with `data`, passes over its pairs."""
        if self.data is not None:
            return self.epochs
        return self.total_steps // self.rollout.steps_per_iteration

    def has_next_iteration(self, iterations: int, played: int) -> bool:
        """Whether there is another round.

        Rounds of whole episodes may take more environment steps than a round asks for, so steps
        are counted: no round begins that could not keep within `total_steps`.

        Args:
            iterations: how many there were.
            played: environment steps of these.
        """
        if self.data is not None:
            return iterations < self.iterations
        return played + self.rollout.steps_per_iteration <= self.total_steps

    @property
    def passes(self) -> int:
        """Over the pairs of one iteration."""
        return 1 if self.data is not None else self.epochs

    @property
    def updates_per_iteration(self) -> int:
        """Optimizer steps between two collections, at most."""
        return self.passes * math.ceil(self.pairs_per_iteration / self.batch_size)

    @property
    def length(self) -> RunLength:
        """How far the run goes; with `data`, nothing is played."""
        if self.data is not None:
            return RunLength("passes over the pairs", total=self.epochs)
        return RunLength(ENVIRONMENT_STEPS, self.rollout.steps_per_iteration, self.total_steps)
