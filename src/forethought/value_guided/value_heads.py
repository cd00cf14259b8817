"""Two Q functions and V on a language model's last hidden states (ILQL)."""

import copy
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from forethought.errors import PolicyError
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.projection import scaled_by
from forethought.value_guided.reweighted import Twin, load_twin, twin_of

HEADS_FILE = "value_heads.safetensors"


class TokenValues(NamedTuple):
    """Of N states, in units of return, fp32."""

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
