"""Settings that several commands share: environment, prompt, adapters, optimizer, compute, rollout.

Every field says what it does; every value is checked when set.
"""

import reprlib
from dataclasses import dataclass, field
from typing import Annotated, Literal

from forethought.errors import ConfigError

ResponseFormat = Literal["thoughts", "action_only"]
"""With the fields that come before the action, or the action alone."""
ResponseForm = Literal["strict", "last_field", "text_search"]
"""Where a response has its action, and what may follow it."""
History = Literal["none", "window", "summary"]
"""What a prompt includes of earlier steps."""
TINY_MODELS = ("tiny", "tiny-small", "tiny-large")
"""Names of the models that are randomly initialized."""


def require(condition: bool, name: str, value: object, expected: str) -> None:
    """Refuses a setting.

    Raises:
        ConfigError: naming the field, the value it has and the values it may have.
    """
    if not condition:
        raise ConfigError(f"{name} is {shown(value)} — expected {expected}")


def require_common(seed: int, checkpoint_every: int) -> None:
    """What every algorithm asks of its seed and its checkpoints."""
    require(0 <= seed < 2**31, "seed", seed, "0 to 2147483647")
    require(checkpoint_every >= 1, "checkpoint_every", checkpoint_every, "1 or more")


def require_value_heads(*, expectile: float, head_learning_rate: float) -> None:
    """What algorithms ask whose values are heads: Q1, Q2 and V."""
    require(0 < expectile < 1, "expectile", expectile, "between 0 and 1")
    rate = head_learning_rate
    require(0 < rate <= 0.1, "head_learning_rate", rate, "above 0, at most 0.1")


def require_return_range(low: float | None, high: float | None) -> None:
    """What algorithms ask of returns that become 0 and 1: both are declared, or neither."""
    if low is None or high is None:
        require(low is high, "return_min and return_max", (low, high), "both or neither")
    else:
        require(low < high, "return_max", high, f"above return_min ({low:g})")


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = 8


def shown(value: object) -> str:
    """A value for a message, however large it is: the middle of what is long is left out."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # Python writes no number of more than 4,300 digits.
        return "a number of thousands of digits"


@dataclass(frozen=True)
class EnvironmentConfig:
    """Which environment is played."""

    id: str = "NumberLine"
    """Name of an environment (`forethought envs` lists them), or `package.module:Class` of your
    own."""

    image_size: int | None = None
    """Pixels on a side of the square image; by default 64 for the tiny model, 300 otherwise."""

    options: tuple[str, ...] = ()
    """Further options of the environment as `name=value`, e.g. `rules=reference`."""

    reward: str | None = None
    """A function of your own that gives the reward, `package.module:function`; by default the
    environment's own counts. It takes a `StepOutcome` (`environments/reward.py`)."""

    workers: int = 0
    """Processes that host environments; 0 keeps them in this process (fast environments), where
    equal seeds give equal bits; processes reply in any order, which changes the last bits."""

    def __post_init__(self) -> None:
        size = self.image_size
        require(size is None or 32 <= size <= 2048, "environment.image_size", size, "32 to 2048")
        require(0 <= self.workers <= 256, "environment.workers", self.workers, "0 to 256")
        for option in self.options:
            require("=" in option, "environment.options", option, "name=value")
        is_name = self.reward is None or ":" in self.reward
        require(is_name, "environment.reward", self.reward, "package.module:function")


@dataclass(frozen=True)
class PromptConfig:
    """Content of the prompts, and form of the responses."""

    format: ResponseFormat = "thoughts"
    """Thoughts before the action, or the action alone."""

    answer_form: ResponseForm = "strict"
    """Valid responses. strict: the response ends at its first `"action": "…"`, after which
    only a closing brace, white space and a closing code fence may come; what follows a good
    action is rewarded with it, and would be learned. last_field: the last such field counts,
    whatever follows. text_search (RL4VLM's code): the only known action in the text after the
    key."""

    wording: Literal["short", "paper"] = "short"
    """The published prompt, or one of a quarter of its length."""

    history: History = "none"
    """What the prompt includes of earlier steps. none: the papers' Markov prompt; window: the last
    steps with their actions; summary: the environment's own summary of the episode."""

    history_steps: int = 2
    """Steps that `window` includes."""

    invalid_action_feedback: bool = False
    """After an invalid action the prompt includes it, and that it had no effect; without this, a
    greedy policy repeats itself to the step limit."""

    return_bins: int = 0
    """Return bins of return-conditioned BC (`train sft --data` trains it); 0: prompts have no
    return."""

    return_bin: int | None = None
    """The return bin in the prompts when the policy acts; by default the highest."""

    def __post_init__(self) -> None:
        steps = self.history_steps
        require(1 <= steps <= 100, "prompt.history_steps", steps, "1 to 100")
        levels, level = self.return_bins, self.return_bin
        require(levels == 0 or 2 <= levels <= 100, "prompt.return_bins", levels, "0, or 2 to 100")
        expected = f"1 to prompt.return_bins ({levels})"
        is_one = level is None or 1 <= level <= levels
        require(is_one, "prompt.return_bin", level, expected)


@dataclass(frozen=True)
class LoraConfig:
    """Low-rank adapters instead of full fine-tuning."""

    components: tuple[Literal["vision_tower", "projector", "language_model"], ...] = ()
    """Parts of the model that get adapters; none means that all weights are trained."""

    rank: int = 128
    """Rank of the adapter matrices. RL4VLM: 128."""

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
    """How the weights move."""

    algorithm: Literal["adam", "muon"] = "adam"
    """"muon" moves the matrices inside the layers along their orthogonalized momentum, and
    the rest (embeddings, norms, value head) by Adam at half the rate. It takes a third of
    Adam's steps to train a small model from scratch; of little use in fine-tuning."""

    learning_rate: float = 1e-5
    """Peak learning rate. RL4VLM: 1e-5; a model trained from scratch needs 1e-4 to 1e-3."""

    final_learning_rate: float = 1e-9
    """Learning rate at the end of the schedule. RL4VLM: 1e-9."""

    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    """Shape of the decay from the first to the second."""

    warmup_steps: int = 0
    """Optimizer steps over which the learning rate rises from zero."""

    epsilon: float = 1e-7
    """Added to the root of the second moment. RL4VLM: 1e-7."""

    max_gradient_norm: float = 1.0
    """Gradients are scaled down to this length. RL4VLM's code: 0.01."""

    def __post_init__(self) -> None:
        rate = self.learning_rate
        hint = f"; did you mean {rate}e-5?" if 0.1 < rate <= 10_000 else ""
        require(0 < rate <= 0.1, "optimizer.learning_rate", rate, "above 0, at most 0.1" + hint)
        final = self.final_learning_rate
        expected = f"0 to learning_rate ({rate:g})"
        require(0 <= final <= rate, "optimizer.final_learning_rate", final, expected)
        require(self.warmup_steps >= 0, "optimizer.warmup_steps", self.warmup_steps, "0 or more")
        require(self.epsilon > 0, "optimizer.epsilon", self.epsilon, "above 0")
        norm = self.max_gradient_norm
        require(norm > 0, "optimizer.max_gradient_norm", norm, "above 0")


FROM_SCRATCH = OptimizerConfig(
    learning_rate=1e-3, final_learning_rate=1e-5, warmup_steps=20, epsilon=1e-8
)
"""Defaults where a randomly initialized model learns from responses: supervised fine-tuning, and
algorithms that learn from stored episodes."""


@dataclass(frozen=True)
class ComputeConfig:
    """How the work is laid on the machine. Changes speed and memory, never what is learned."""

    micro_batch_tokens: int = 2048
    """Tokens, padding included, in one forward and backward pass; gradients accumulate."""

    precision: Literal["fp32", "bf16"] = "fp32"
    """Precision of the forward pass; weights, log-probs and losses stay fp32. `forethought doctor`
    says whether this machine's processor has it."""

    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, a third more time."""

    threads: int | None = None
    """CPU threads of PyTorch; by default OMP_NUM_THREADS, else one fewer than there are cores."""

    def __post_init__(self) -> None:
        tokens = self.micro_batch_tokens
        require(tokens >= 64, "compute.micro_batch_tokens", tokens, "64 or more")
        threads = self.threads
        require(threads is None or threads >= 1, "compute.threads", threads, "1 or more")


class Inline:
    """Marks a group of fields that lie beside their neighbors, in YAML and among flags:
    `--rollout.temperature`, not `--rollout.sampling.temperature`."""


@dataclass(frozen=True)
class SamplingConfig:
    """How a policy samples completions, in training, evaluation and collection."""

    temperature: float = 1.0
    """Sampling temperature; log-probs are recorded at it. 0 takes the most likely token, which
    training refuses. RL4VLM trains at 0.2."""

    max_new_tokens: int = 128
    """Longest completion. RL4VLM: 256."""

    constrain_actions: bool = False
    """Constrained decoding to admissible actions: completions can name only actions that are
    admissible now, those that the prompt lists or else all legal ones. The tokens of the action
    field are drawn from those that lead to one, and their log-probs are of that distribution."""

    def __post_init__(self) -> None:
        require(self.temperature >= 0, "temperature", self.temperature, "0 or more")
        require(self.max_new_tokens >= 1, "max_new_tokens", self.max_new_tokens, "1 or more")


OnInvalid = Literal["random", "penalize"]
"""What happens when a completion holds no valid action."""


@dataclass(frozen=True)
class RolloutConfig:
    """How experience is gathered."""

    num_envs: int = 64
    """Environments played at the same time, over all processes."""

    steps_per_iteration: int = 512
    """Environment steps between two updates. RL4VLM: 512 (NumberLine, Blackjack), 1024 otherwise.
    Without a critic the least number: whole episodes are played, one in each of `num_envs`."""

    sampling: Annotated[SamplingConfig, Inline()] = field(
        default_factory=lambda: SamplingConfig(temperature=0.2)
    )

    on_invalid: OnInvalid = "random"
    """A completion without a valid action: draw one uniformly (RL4VLM, Eq. 4.1), or let the
    environment penalize it."""

    def __post_init__(self) -> None:
        require(self.num_envs >= 1, "rollout.num_envs", self.num_envs, "1 or more")
        steps = self.steps_per_iteration
        expected = f"a positive multiple of rollout.num_envs ({self.num_envs})"
        is_multiple = steps > 0 and steps % self.num_envs == 0
        require(is_multiple, "rollout.steps_per_iteration", steps, expected)
        temperature = self.sampling.temperature
        require(temperature > 0, "rollout.temperature", temperature, "above 0")
