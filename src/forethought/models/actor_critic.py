"""One module that scores completions and judges prompts: the model and its critic."""

from collections.abc import Callable
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from forethought.losses.ppo import token_entropy
from forethought.models.batching import Held, TokenBatch
from forethought.models.encoding import placeholder_ids
from forethought.models.projection import LARGEST, Projection, Score

RULED_OUT = -1e9
"""Probability exactly 0, yet finite: 0 · log 0 stays 0 in the entropy."""


class Scores(NamedTuple):
    """What one forward pass says about a batch."""

    logprobs_BT: Tensor
    """Log-probs of the target tokens, nats, fp32, at the asked temperature; 0 outside
    completions."""
    entropies_BT: Tensor
    """Entropies of the distributions they were drawn from, nats, no gradient unless asked for."""
    values_B: Tensor | None
    """The critic's estimates, fp32."""


class ValueHead(nn.Module):
    """Three-layer perceptron on the hidden state of the last prompt token (RL4VLM, C.3).

    Its layers speak in deviations from a mean, whatever the unit of the returns:
    V = mean + deviation · layers(hidden). Steps of Adam's size would take thousands of updates
    to a return of 10, and the differences between states come after that.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, hidden_size: int, *, generator: torch.Generator) -> None:
        super().__init__()
        width = min(hidden_size, 1024)
        sizes = [(hidden_size, width), (width, width), (width, 1)]
        linears = [nn.Linear(fan_in, fan_out) for fan_in, fan_out in sizes]
        for linear in linears:
            nn.init.orthogonal_(linear.weight, gain=2**0.5, generator=generator)
            nn.init.zeros_(linear.bias)
        # A critic that has not learned yet says the mean in every state.
        nn.init.zeros_(linears[-1].weight)
        self.layers = nn.Sequential(linears[0], nn.ReLU(), linears[1], nn.ReLU(), linears[2])
        self.register_buffer("mean", torch.tensor(0.0))
        self.register_buffer("deviation", torch.tensor(1.0))

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., hidden size] to [...], in units of return, fp32."""
        return self.mean + self.deviation * self.layers(hidden.float()).squeeze(-1).float()

    @torch.no_grad()
    def rescale(self, mean: float, deviation: float) -> None:
        """New scale, the same values as before (PopArt: van Hasselt et al. 2016, Eq. 2).

        A head that has not learned anything yet has nothing to keep: it says the mean.

        Args:
            mean: of the returns to predict.
            deviation: their standard deviation, above 0.
        """
        last = cast(nn.Linear, self.layers[-1])
        if last.weight.any() or last.bias.any():
            last.bias.copy_((self.mean + self.deviation * last.bias - mean) / deviation)
            last.weight.mul_(self.deviation / deviation)
        self.mean.fill_(mean)
        self.deviation.fill_(deviation)


class ActorCritic(nn.Module):
    """Any Hugging Face causal or image-text-to-text model, with an optional critic."""

    def __init__(self, model: PreTrainedModel, value_head: ValueHead | None) -> None:
        super().__init__()
        self.model = model
        self.value_head = value_head
        self.largest_projection = LARGEST
        """Logits that are held at a time; more are made in chunks."""
        self._unspeakable = placeholder_ids(model)
        self._projection = Projection(model)

    @property
    def vocabulary(self) -> int:
        """Tokens that the model scores."""
        return self._projection.vocabulary

    @property
    def returns_deviation(self) -> Tensor:
        """What the critic takes for one unit; 1 where there is none."""
        return torch.tensor(1.0) if self.value_head is None else self.value_head.deviation

    def without_dropout(self) -> None:
        """Evaluation mode; yet layers that were told to recompute their activations do.

        They do so in training mode only: the layer itself is put there, what it is made of
        is not. Dropout would make the ratio of a policy to itself other than 1.
        """
        self.eval()
        for module in self.modules():
            if isinstance(module, GradientCheckpointingLayer):
                module.training = module.gradient_checkpointing

    def last_hidden(self) -> Tensor:
        """Hidden states at the positions that the last forward pass projected."""
        return self._projection.take_hidden()

    def speakable(self, logits: Tensor) -> Tensor:
        """Logits [..., V] in fp32 with image placeholders ruled out.

        A placeholder that was sampled would be taken for an image that is not there.
        Sampling and scoring both go through here, so their distributions agree.
        """
        logits = logits.float()
        if not self._unspeakable:
            return logits
        ids = torch.tensor(self._unspeakable, device=logits.device)
        return logits.index_fill(-1, ids, RULED_OUT)

    def forward(
        self,
        batch: TokenBatch,
        *,
        temperature: float = 1.0,
        entropy_gradient: bool = False,
        critic_gradient: bool = True,
    ) -> Scores:
        """Scores completions under the current weights.

        Args:
            batch: on the model's device.
            temperature: divides the logits; the one that sampled, for a fair ratio.
            entropy_gradient: whether the entropies are part of what is optimized.
            critic_gradient: whether the values' gradient goes on from their head into the model.
        """
        keeps_entropy = entropy_gradient and torch.is_grad_enabled()
        logits = batch.input_ids_RL.shape[0] * len(batch.window) * self.vocabulary
        score = self._score_at_once if logits <= self.largest_projection else self._score_in_chunks
        hidden_RWH, logprobs_BT, entropies_BT = score(batch, temperature, keeps_entropy)
        values_B = None
        if self.value_head is not None:
            seen_BH = hidden_RWH.flatten(0, 1)[batch.value_sources_B]
            values_B = self.value_head(seen_BH if critic_gradient else seen_BH.detach())
        outside_BT = ~batch.mask_BT
        return Scores(
            logprobs_BT.masked_fill(outside_BT, 0.0),
            entropies_BT.masked_fill(outside_BT, 0.0),
            values_B,
        )

    def _score_at_once(
        self, batch: TokenBatch, temperature: float, keeps_entropy: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Hidden states [R, W, H], log-probs and entropies [B, T]."""
        logits_RWV = self._window_logits(batch)
        hidden_RWH = self.last_hidden()
        logprobs_NV = torch.log_softmax(
            self.speakable(logits_RWV.flatten(0, 1)) / temperature, dim=-1
        )
        logprobs_BT = logprobs_NV[batch.sources_BT, batch.targets_BT]
        with torch.set_grad_enabled(keeps_entropy):
            entropies_BT = token_entropy(logprobs_V=logprobs_NV)[batch.sources_BT]
        if batch.held is not None:
            logprobs_CA = logprobs_NV[_held_sources(batch)[:, None], batch.held.ids_CA]
            logprobs_BT, entropies_BT = _held(logprobs_CA, logprobs_BT, entropies_BT, batch.held)
        return hidden_RWH, logprobs_BT, entropies_BT

    def _score_in_chunks(
        self, batch: TokenBatch, temperature: float, keeps_entropy: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same numbers, of the completions' tokens alone and some at a time."""

        def score(logits_nV: Tensor, targets_n: Tensor) -> tuple[Tensor, Tensor]:
            logprobs_nV = torch.log_softmax(logits_nV / temperature, dim=-1)
            with torch.set_grad_enabled(keeps_entropy):
                entropies_n = token_entropy(logprobs_V=logprobs_nV)
            return logprobs_nV.gather(1, targets_n[:, None])[:, 0], entropies_n

        def pick(logits_nV: Tensor, ids_nA: Tensor) -> tuple[Tensor]:
            return (torch.log_softmax(logits_nV / temperature, dim=-1).gather(1, ids_nA),)

        hidden_RWH = self._window_hidden(batch)
        hidden_NH = hidden_RWH.flatten(0, 1)
        mask_BT = batch.mask_BT
        logprobs_N, entropies_N = self.in_chunks(
            score, hidden_NH[batch.sources_BT[mask_BT]], batch.targets_BT[mask_BT]
        )
        zeros_BT = hidden_NH.new_zeros(mask_BT.shape, dtype=torch.float32)
        logprobs_BT = zeros_BT.masked_scatter(mask_BT, logprobs_N)
        entropies_BT = zeros_BT.masked_scatter(mask_BT, entropies_N)
        if batch.held is not None:
            hidden_CH = hidden_NH[_held_sources(batch)]
            (logprobs_CA,) = self.in_chunks(pick, hidden_CH, batch.held.ids_CA)
            logprobs_BT, entropies_BT = _held(logprobs_CA, logprobs_BT, entropies_BT, batch.held)
        return hidden_RWH, logprobs_BT, entropies_BT

    def action_logprobs(self, batch: TokenBatch, is_action_BT: Tensor) -> Tensor:
        """Log-probs [N, V] of all tokens where some of the completion tokens stand: nats, fp32.

        Args:
            batch: on the model's device.
            is_action_BT: which of its tokens; N of them, in the order of their flags.
        """
        return self.project(self.action_hidden(batch, is_action_BT))

    def action_hidden(self, batch: TokenBatch, is_action_BT: Tensor) -> Tensor:
        """Last hidden states [N, H] of which some of the completion tokens were foretold.

        Args:
            batch, is_action_BT: as `action_logprobs`.
        """
        return self._window_hidden(batch).flatten(0, 1)[batch.sources_BT[is_action_BT]]

    def project(self, hidden_NH: Tensor) -> Tensor:
        """Log-probs [N, V] of all tokens after hidden states, nats, fp32."""
        return torch.log_softmax(self.logits(hidden_NH), dim=-1)

    def log_normalizers(self, hidden_NH: Tensor) -> Tensor:
        """log Σ exp of all tokens' logits [N] after hidden states, fp32."""

        def normalize(logits_nV: Tensor) -> tuple[Tensor]:
            return (torch.logsumexp(logits_nV, dim=-1),)

        return self.in_chunks(normalize, hidden_NH)[0]

    def in_chunks(self, score: Score, hidden_NH: Tensor, *columns_N: Tensor) -> tuple[Tensor, ...]:
        """What `score` makes of the logits after hidden states, a bounded number of them at a time,
        forwards and backwards.

        Args:
            score: of logits [n, V], placeholders ruled out, fp32, and of further columns [n, …]: a
                tuple of columns, row by row, or of sums [1] over the rows.
        """

        def score_speakable(logits_nV: Tensor, *columns_n: Tensor) -> tuple[Tensor, ...]:
            return score(self.speakable(logits_nV), *columns_n)

        return self._projection.in_chunks(
            score_speakable, hidden_NH, *columns_N, largest=self.largest_projection
        )

    def without_projection(self, forward: Callable[[], Tensor]) -> Tensor:
        """Last hidden states [R, W, H] of a forward pass of the model that gives its logits, which
        are not made."""
        return self._projection.leave_out(forward)

    def logits(self, hidden: Tensor) -> Tensor:
        """Those after hidden states: [..., V], placeholders ruled out, fp32."""
        return self.speakable(self._projection(hidden))

    def _window_hidden(self, batch: TokenBatch) -> Tensor:
        return self._projection.leave_out(lambda: self._window_logits(batch))

    def _window_logits(self, batch: TokenBatch) -> Tensor:
        logits_RWV: Tensor = self.model(
            input_ids=batch.input_ids_RL,
            attention_mask=attention_mask(batch) if batch.is_shared else None,
            position_ids=self.position_ids(batch),
            logits_to_keep=batch.window,
            use_cache=False,
            **batch.images,
        ).logits
        return logits_RWV

    def position_ids(self, batch: TokenBatch) -> Tensor | None:
        """Positions [R, L], or [3, R, L] for multimodal rotary embeddings (Qwen-VL).

        None where the model's own counting is right.
        """
        rope = getattr(self.model.base_model, "get_rope_index", None)
        if rope is None or not batch.images:
            return batch.places_RL if batch.is_shared else None
        types_RL = (batch.input_ids_RL == self.model.config.image_token_id).int()
        real_RL = (batch.groups_RL >= 0).long()
        positions_3RL, _ = rope(
            batch.input_ids_RL,
            mm_token_type_ids=types_RL,
            image_grid_thw=batch.images["image_grid_thw"],
            attention_mask=real_RL,
        )
        # Behind the prompt all three count on by one a token: shift each completion back
        # to the prompt's end, as its place is.
        straight_L = torch.arange(batch.places_RL.shape[1], device=batch.places_RL.device)
        return positions_3RL + (batch.places_RL - straight_L)


def _held_sources(batch: TokenBatch) -> Tensor:
    """Where the tokens [C] that could be only some were predicted, in the flattened window."""
    assert batch.held is not None
    return batch.sources_BT[batch.held.rows_C, batch.held.columns_C]


def _held(
    logprobs_CA: Tensor, logprobs_BT: Tensor, entropies_BT: Tensor, held: Held
) -> tuple[Tensor, Tensor]:
    """Log-probs and entropies of tokens that could be only some: of the distribution over those."""
    logprobs_CA = logprobs_CA.masked_fill(~held.mask_CA, RULED_OUT)
    totals_C = torch.logsumexp(logprobs_CA, dim=1)
    places = (held.rows_C, held.columns_C)
    own_C = logprobs_BT[places] - totals_C
    with torch.set_grad_enabled(entropies_BT.requires_grad):
        entropies_C = token_entropy(logprobs_V=logprobs_CA - totals_C[:, None])
    return logprobs_BT.index_put(places, own_C), entropies_BT.index_put(places, entropies_C)


def attention_mask(batch: TokenBatch) -> Tensor:
    """Who may attend to whom [R, 1, L, L]: backwards, to the prompt and the own completion.

    Padding attends to itself and the prompt, lest a row of the softmax be empty.
    """
    groups_RL = batch.groups_RL
    related_RLL = (groups_RL[:, None, :] == 0) | (groups_RL[:, None, :] == groups_RL[:, :, None])
    return related_RLL.tril()[:, None]
