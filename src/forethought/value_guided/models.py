"""The second model beside a behavior policy: a copy of it, with or without value heads."""

import copy
import json
from dataclasses import asdict
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from forethought.configs.acting import ValueActingConfig
from forethought.errors import PolicyError
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.actor_critic import ActorCritic
from forethought.models.batching import TokenBatch
from forethought.models.loading import load_pretrained, settle
from forethought.models.lora import save_weights
from forethought.models.projection import scaled_by

HEADS_FILE = "value_heads.safetensors"
VALUES = "values"
"""Folder of the value model, beside π_φ's, inside a saved model of ILQL."""
VALUES_SETTINGS = "value_weighted.json"


class Twin(NamedTuple):
    """A second model of the same architecture, with weights of its own."""

    module: ActorCritic
    adapter: PeftModel | None

    def save(self, folder: Path, like: HuggingFacePolicy) -> None:
        """Writes it as a model of its own, with the first one's processor."""
        save_weights(self.module.model, self.adapter, folder)
        like.processor.save_pretrained(folder)
        settle(folder)

    @torch.no_grad()
    def follow(self, learning: nn.Module, polyak_tau: float) -> None:
        """θ̄ ← (1 - τ) θ̄ + τ θ, of what is trained: this twin is the target network.

        Args:
            learning: θ, a model of the same architecture.
        """
        for slow, fast in zip(self.module.parameters(), learning.parameters(), strict=True):
            if fast.requires_grad:
                slow.lerp_(fast, polyak_tau)


def twin_of(policy: HuggingFacePolicy) -> Twin:
    """A copy of a policy's model; what is not trained is shared, not copied."""
    return Twin(*_copied((policy.module, policy.adapter), policy.module))


def twin_again(twin: Twin) -> Twin:
    """A copy of a twin, likewise."""
    return Twin(*_copied((twin.module, twin.adapter), twin.module))


def _copied(
    parts: tuple[ActorCritic, PeftModel | None], module: ActorCritic
) -> tuple[ActorCritic, PeftModel | None]:
    shared = {id(p): p for p in module.parameters() if not p.requires_grad}
    return copy.deepcopy(parts, shared)


def load_twin(folder: Path, like: HuggingFacePolicy) -> Twin:
    """What `Twin.save` wrote.

    Args:
        like: the first model; what neither of them trains is shared with it.

    Raises:
        PolicyError: nothing there, or a model of another architecture.
    """
    loaded = load_pretrained(str(folder), dtype=like.module.model.dtype)
    twin = Twin(ActorCritic(loaded.model, None), loaded.adapter)
    mine, theirs = dict(twin.module.named_parameters()), dict(like.module.named_parameters())
    if mine.keys() != theirs.keys() - {n for n in theirs if n.startswith("value_head.")}:
        raise PolicyError(f"{folder}: got another architecture than the behavior policy's")
    for name, parameter in mine.items():
        if not parameter.requires_grad:
            parameter.data = theirs[name].data
    twin.module.to(like.device)
    return twin


class TokenValues(NamedTuple):
    """Values of N states, in units of return, fp32."""

    first_NV: Tensor
    second_NV: Tensor
    values_N: Tensor


class ValueHeads(nn.Module):
    """Q1, Q2 and V, a two-layer perceptron each, and slowly moving copies of the first two.

    The copies read the same hidden states as the originals do: there is one model, one forward
    pass, and only what stands behind the hidden states is slow.
    """

    def __init__(self, hidden_size: int, vocabulary: int, *, generator: torch.Generator) -> None:
        """
        Args:
            vocabulary: tokens that the model's own projection scores.
        """
        super().__init__()
        self.first = _perceptron(hidden_size, vocabulary, generator)
        self.second = _perceptron(hidden_size, vocabulary, generator)
        self.value = _perceptron(hidden_size, 1, generator)
        self.slow_first = copy.deepcopy(self.first).requires_grad_(requires_grad=False)
        self.slow_second = copy.deepcopy(self.second).requires_grad_(requires_grad=False)

    def forward(self, hidden_NH: Tensor) -> TokenValues:
        hidden_NH = hidden_NH.float()
        return TokenValues(
            self.first(hidden_NH), self.second(hidden_NH), self.value(hidden_NH).squeeze(-1)
        )

    def slow(self, hidden_NH: Tensor) -> Tensor:
        """min(Q̄1, Q̄2) of every token: [N, V], fp32."""
        hidden_NH = hidden_NH.float()
        return torch.minimum(self.slow_first(hidden_NH), self.slow_second(hidden_NH))

    @torch.no_grad()
    def follow(self, rate: float) -> None:
        """θ̄ ← (1 - α) θ̄ + α θ."""
        for slow, fast in ((self.slow_first, self.first), (self.slow_second, self.second)):
            for one, other in zip(slow.parameters(), fast.parameters(), strict=True):
                one.lerp_(other, rate)


def _perceptron(inputs: int, outputs: int, generator: torch.Generator) -> nn.Sequential:
    linears = [nn.Linear(inputs, 2 * inputs), nn.Linear(2 * inputs, outputs)]
    nn.init.kaiming_uniform_(linears[0].weight, nonlinearity="relu", generator=generator)
    nn.init.zeros_(linears[0].bias)
    # Values that start at zero neither praise nor blame before they have learned.
    nn.init.zeros_(linears[1].weight)
    nn.init.zeros_(linears[1].bias)
    return nn.Sequential(linears[0], nn.ReLU(), linears[1])


class ValueModel(nn.Module):
    """A language model's layers with value heads behind them."""

    def __init__(self, twin: Twin, heads: ValueHeads) -> None:
        super().__init__()
        self._twin = twin
        self.trunk = twin.module
        # The name by which the optimizer gives heads a rate of their own.
        self.value_head = heads

    def action_hidden(self, tokens: TokenBatch, is_action_BT: Tensor) -> Tensor:
        """Last hidden states [N, H] of the layers, without dropout: as `ActorCritic`'s."""
        self.trunk.without_dropout()
        return self.trunk.action_hidden(tokens, is_action_BT)

    def save(self, folder: Path, like: HuggingFacePolicy) -> None:
        """Writes the layers as a model of its own, and the heads beside it."""
        self._twin.save(folder, like)
        save_file(self.value_head.state_dict(), folder / HEADS_FILE)


def new_heads(model: PreTrainedModel, *, seed: int) -> ValueHeads:
    """Heads that have learned nothing, for this model.

    Raises:
        PolicyError: a model that does more to its projection's output than giving it out.
    """
    text = model.config.get_text_config()
    for name in scaled_by(model):
        raise PolicyError(
            f"{type(model).__name__} scales its logits ({name} {getattr(text, name)}), which "
            "values are not to be — expected a model without"
        )
    projection = model.get_output_embeddings()
    assert projection is not None
    vocabulary = int(projection.weight.shape[0])
    generator = torch.Generator().manual_seed(seed)
    return ValueHeads(text.hidden_size, vocabulary, generator=generator)


def new_value_model(policy: HuggingFacePolicy, *, seed: int) -> ValueModel:
    """A copy of a policy's layers, with heads that have learned nothing.

    Raises:
        PolicyError: as `new_heads`.
    """
    heads = new_heads(policy.module.model, seed=seed)
    return ValueModel(twin_of(policy), heads.to(policy.device))


def load_value_model(folder: Path, like: HuggingFacePolicy) -> ValueModel:
    """What `ValueModel.save` wrote.

    Args:
        like: the behavior policy; what neither of them trains is shared with it.

    Raises:
        PolicyError: nothing there, or a model of another architecture.
    """
    twin = load_twin(folder, like)
    heads = new_heads(twin.module.model, seed=0)
    try:
        heads.load_state_dict(load_file(folder / HEADS_FILE))
    except (OSError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise PolicyError(
            f"{folder / HEADS_FILE}: got no heads of this model ({reason})"
        ) from error
    return ValueModel(twin, heads.to(like.device))


class _Lower(nn.Module):
    """min(Q1, Q2) in the place of a model's projection onto the vocabulary."""

    def __init__(self, heads: ValueHeads) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., hidden size] to [..., V], fp32."""
        first, second, _ = self.heads(hidden)
        return torch.minimum(first, second)


def reads_values(values: ValueModel) -> ActorCritic:
    """The value model as one whose logits are min(Q1, Q2); it cannot be trained any more.

    Any architecture then runs on the decode loop's cache, as it does with its own projection.
    """
    model = values.trunk.model
    model.set_output_embeddings(_Lower(values.value_head))
    return ActorCritic(model, None)


class PolicyWithValues:
    """A policy, and a copy of it with value heads; satisfies `Trainable`.

    Its module is the one of both that the present phase trains.
    """

    def __init__(
        self,
        policy: HuggingFacePolicy,
        *,
        policy_folder: str,
        values_folder: str,
        acting: ValueActingConfig | None,
    ) -> None:
        """
        Args:
            policy: whose present parameters with a gradient are those that it learns with; the
                values' layers are copied from it when they are first needed.
            policy_folder, values_folder: where they are saved inside a model's folder; "": there.
            acting: how they act together, which is saved with them; None: the policy acts alone.
        """
        self.policy = policy
        self.values: ValueModel | None = None
        self._folders = policy_folder, values_folder
        self._acting = acting
        self._learning = [p for p in policy.module.parameters() if p.requires_grad]
        self._trained: nn.Module = policy.module

    @property
    def module(self) -> nn.Module:
        """Its parameters that require a gradient are trained."""
        return self._trained

    def begin(self, trained: Literal["policy", "values"], *, seed: int) -> None:
        """Makes the values when they are first needed, and freezes what is not trained.

        Args:
            seed: of the heads' first weights.
        """
        is_policy = trained == "policy"
        if self.values is None:
            if is_policy:
                return
            self.values = new_value_model(self.policy, seed=seed)
        for parameter in self._learning:
            parameter.requires_grad_(is_policy)
        if is_policy:
            self.values.requires_grad_(requires_grad=False)
        idle = self.values if is_policy else self.policy.module
        idle.eval()
        self._trained = self.policy.module if is_policy else self.values

    def save(self, folder: Path) -> None:
        """Writes what is there, each as a model of its own."""
        folder.mkdir(parents=True, exist_ok=True)
        policy_folder, values_folder = self._folders
        self.policy.save(folder / policy_folder)
        if self.values is not None:
            self.values.save(folder / values_folder, self.policy)
        if self._acting is not None:
            save_acting(folder, self._acting)

    def load_values(self, folder: Path) -> None:
        """Takes the values that `save` wrote, if it wrote any."""
        if (values := folder / self._folders[1]).is_dir():
            self.values = load_value_model(values, self.policy)


def save_acting(folder: Path, acting: ValueActingConfig) -> None:
    """Writes what acting needs beside the weights into a model's folder."""
    (folder / VALUES_SETTINGS).write_text(json.dumps(asdict(acting)) + "\n", encoding="utf-8")


def load_settings(folder: Path) -> ValueActingConfig:
    """What `save_acting` wrote.

    Raises:
        PolicyError: the file cannot be read, or is another one.
    """
    path = folder / VALUES_SETTINGS
    try:
        return ValueActingConfig(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise PolicyError(f"{path}: got no settings of an ILQL policy ({error})") from error
