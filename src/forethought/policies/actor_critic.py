"""One module that scores completions and judges prompts: the model and its critic."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from forethought.policies.batching import TokenBatch


class Scores(NamedTuple):
    """What one forward pass says about a batch."""

    logprobs_BT: Tensor
    """Of the target tokens, nats, fp32, at the asked temperature; 0 outside completions."""
    entropies_BT: Tensor
    """Of the distributions they were drawn from, nats, no gradient unless asked for."""
    values_B: Tensor | None
    """The critic's estimates, fp32."""


class ValueHead(nn.Module):
    """Three-layer perceptron on the hidden state of the last prompt token (RL4VLM, C.3)."""

    def __init__(self, hidden_size: int, *, generator: torch.Generator) -> None:
        super().__init__()
        width = min(hidden_size, 1024)
        sizes = [(hidden_size, width), (width, width), (width, 1)]
        linears = [nn.Linear(fan_in, fan_out) for fan_in, fan_out in sizes]
        for linear in linears:
            nn.init.orthogonal_(linear.weight, gain=2**0.5, generator=generator)
            nn.init.zeros_(linear.bias)
        # A critic that starts at zero neither praises nor blames before it has learned.
        nn.init.zeros_(linears[-1].weight)
        self.layers = nn.Sequential(linears[0], nn.ReLU(), linears[1], nn.ReLU(), linears[2])

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., hidden size] to [...], fp32."""
        return self.layers(hidden.float()).squeeze(-1)


class ActorCritic(nn.Module):
    """Any Hugging Face causal or image-text-to-text model, with an optional critic."""

    def __init__(self, model: PreTrainedModel, value_head: ValueHead | None) -> None:
        super().__init__()
        self.model = model
        self.value_head = value_head
        self._hidden: Tensor | None = None
        # The projection's input is the last hidden state, in every architecture; asking
        # for `output_hidden_states` would keep those of all layers.
        model.get_output_embeddings().register_forward_pre_hook(self._remember_hidden)

    def _remember_hidden(self, module: nn.Module, arguments: tuple[Tensor, ...]) -> None:
        self._hidden = arguments[0]

    def last_hidden(self) -> Tensor:
        """Hidden states at the positions that the last forward pass projected."""
        assert self._hidden is not None
        hidden, self._hidden = self._hidden, None
        return hidden

    def forward(
        self, batch: TokenBatch, *, temperature: float = 1.0, entropy_gradient: bool = False
    ) -> Scores:
        """Scores completions under the current weights.

        Args:
            batch: on the model's device.
            temperature: divides the logits; the one that sampled, for a fair ratio.
            entropy_gradient: whether the entropies are part of what is optimised.
        """
        logits_BTV: Tensor = self.model(
            input_ids=batch.input_ids_BL,
            logits_to_keep=batch.window,
            use_cache=False,
            **batch.model_inputs,
        ).logits
        hidden_BTH = self.last_hidden()
        logprobs_BTV = torch.log_softmax(logits_BTV.float() / temperature, dim=-1)
        logprobs_BT = logprobs_BTV.gather(-1, batch.targets_BT[..., None]).squeeze(-1)
        with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
            entropies_BT = -(logprobs_BTV.exp() * logprobs_BTV).sum(-1)
        values_B = None
        if self.value_head is not None:
            rows_B = torch.arange(len(hidden_BTH), device=hidden_BTH.device)
            values_B = self.value_head(hidden_BTH[rows_B, batch.value_index_B])
        outside_BT = ~batch.mask_BT
        return Scores(
            logprobs_BT.masked_fill(outside_BT, 0.0),
            entropies_BT.masked_fill(outside_BT, 0.0),
            values_B,
        )
