"""One model and its cache: whole prompts at once, then one token a row and step.

Two things make it faster than the model's own forward pass, without a line of code for any one
architecture: the attention of a token step (`attention.py`), and a last layer that is not computed
where nobody reads it.

Of a prompt only the last position is read. All layers but the last need every position, for the
keys and values of the next; the last layer's perceptron, most of its work, needs that one position
alone. A quarter of a prompt's cost in a model of four layers is its last layer; in a model of forty
there is little to spare.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from forethought.generation.attention import TokenStepAttention
from forethought.generation.cache import RowCache
from forethought.models.actor_critic import ActorCritic
from forethought.models.batching import TokenBatch
from forethought.models.encoding import Encoder
from forethought.models.lora import component_of


class LastLayer:
    """The last perceptron of a model's decoder, where it can be found by its usual name."""

    def __init__(self, model: PreTrainedModel, *, layers: int) -> None:
        """
        Args:
            layers: of the decoder.
        """
        self._perceptron = _find_perceptron(model, layers)

    @contextmanager
    def only_at(self, ends_B: Tensor) -> Generator[None]:
        """Within: of each row only this position is right, the others are not to be read."""
        if self._perceptron is None:
            yield
            return
        shape: list[torch.Size] = []
        rows_B = torch.arange(len(ends_B), device=ends_B.device)

        def take(module: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
            hidden_BLH, *others = arguments
            shape.append(hidden_BLH.shape)
            return (hidden_BLH[rows_B, ends_B][:, None], *others)

        def put_back(module: nn.Module, arguments: object, output_B1H: Tensor) -> Tensor:
            whole_BLH = output_B1H.new_zeros(shape.pop())
            whole_BLH[rows_B, ends_B] = output_B1H[:, 0]
            return whole_BLH

        hooks = (
            self._perceptron.register_forward_pre_hook(take),
            self._perceptron.register_forward_hook(put_back),
        )
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


def _find_perceptron(model: PreTrainedModel, layers: int) -> nn.Module | None:
    for path, module in model.named_modules():
        is_decoder = (
            component_of(path) == "language_model" and len(list(module.children())) == layers
        )
        if is_decoder and isinstance(module, nn.ModuleList):
            found = getattr(module[-1], "mlp", None)
            return found if isinstance(found, nn.Module) else None
    return None


class PromptsRead(NamedTuple):
    """What a model makes of B prompts."""

    logits_BV: Tensor
    """Logits of the first token of the answer, placeholders ruled out, fp32."""
    values: list[float | None]
    """The critic's, if the model has one."""
    lags: list[int]
    """Position of the answer's first token less the prompt's length: below 0 for multimodal
    positions, where an image takes fewer than its tokens."""


class SteppedModel:
    """Reads prompts into the rows of its own cache, and goes on in them token by token."""

    def __init__(self, actor_critic: ActorCritic, encoder: Encoder, *, rows: int) -> None:
        """
        Args:
            actor_critic: in evaluation mode (no dropout).
            rows: of the cache.
        """
        self._module = actor_critic
        self._limits = encoder.limits
        self._rows = rows
        self.device = actor_critic.model.device
        self._dtype = actor_critic.model.dtype
        self._last_layer = LastLayer(actor_critic.model, layers=encoder.limits.layers)
        self._attention = TokenStepAttention(actor_critic.model)
        self._cache: RowCache | None = None

    def ensure_capacity(self, longest: int) -> None:
        """Makes room for rows of so many tokens.

        Raises:
            PolicyError: the model cannot read so far.
        """
        self._limits.require_positions(longest)
        self._limits.require_plain_attention(longest)
        if self._cache is None:
            self._cache = RowCache(layers=self._limits.layers, rows=self._rows, capacity=longest)
        self._cache.ensure_capacity(longest)

    def copy_rows(self, sources: Tensor, destinations: Tensor, length: int) -> None:
        """Copies the first `length` positions of rows onto rows."""
        assert self._cache is not None
        self._cache.copy_rows(sources, destinations, length)

    def read_prompts(self, batch: TokenBatch, lengths: Sequence[int], *rows: Tensor) -> PromptsRead:
        """Puts prompts through the model.

        Args:
            batch: one prompt a row, no completions, on the model's device.
            lengths: of the prompts.
            rows: of the cache that the prompts go to; more than one list: to each.
        """
        assert self._cache is not None
        self._cache.begin_prefill(*rows)
        positions = self._module.position_ids(batch)
        ends_B = torch.tensor([length - 1 for length in lengths], device=self.device)

        def forward() -> Tensor:
            logits_RWV: Tensor = self._module.model(
                input_ids=batch.input_ids_RL,
                position_ids=positions,
                past_key_values=self._cache,
                logits_to_keep=batch.window,
                use_cache=True,
                **batch.images,
            ).logits
            return logits_RWV

        # Prompts end at different places: the window that holds all ends is much longer than they.
        with self._last_layer.only_at(ends_B):
            hidden_RWH = self._module.without_projection(forward)
        hidden_BH = hidden_RWH.flatten(0, 1)[batch.value_sources_B]
        logits_BV = self._module.logits(hidden_BH)
        lags = [0] * len(lengths)
        if positions is not None:
            lags = [
                int(positions[:, index, :length].max()) + 1 - length
                for index, length in enumerate(lengths)
            ]
        return PromptsRead(logits_BV, self._values(hidden_BH), lags)

    def read_further(
        self, tokens: Sequence[Sequence[int]], starts: Sequence[int], rows: Sequence[int]
    ) -> PromptsRead:
        """Puts the rest of prompts through the model whose beginnings are in the cache already.

        Args:
            tokens: the rest of each, at least one token.
            starts: how many tokens of each its row holds.
            rows: of the cache.
        """
        assert self._cache is not None
        width = max(map(len, tokens))
        self._cache.ensure_capacity(max(starts) + width)  # Padding is written, too.
        ids_BS = torch.tensor([[*rest, *[rest[-1]] * (width - len(rest))] for rest in tokens])
        ends_B = torch.tensor([len(rest) - 1 for rest in tokens])
        own_S, starts_B = torch.arange(width), torch.tensor(starts)
        positions_BS = starts_B[:, None] + own_S
        length = int(positions_BS.max()) + 1
        ahead_B1ST = (torch.arange(length) > positions_BS[:, :, None])[:, None]
        # Padding has no position of its own: the model may know no further ones.
        known_BS = torch.minimum(positions_BS, (starts_B + ends_B)[:, None])
        ends_B = ends_B.to(self.device)
        self._cache.begin_further(
            torch.tensor(rows, device=self.device), positions_BS.to(self.device), length
        )

        def forward() -> Tensor:
            logits_BSV: Tensor = self._module.model(
                input_ids=ids_BS.to(self.device),
                attention_mask=self._mask(ahead_B1ST.to(self.device)),
                position_ids=known_BS.to(self.device),
                past_key_values=self._cache,
                logits_to_keep=own_S.to(self.device),
                use_cache=True,
            ).logits
            return logits_BSV

        with self._last_layer.only_at(ends_B):
            hidden_BSH = self._module.without_projection(forward)
        hidden_BH = hidden_BSH[torch.arange(len(rows), device=self.device), ends_B]
        return PromptsRead(self._module.logits(hidden_BH), self._values(hidden_BH), [0] * len(rows))

    def _values(self, hidden_BH: Tensor) -> list[float | None]:
        head = self._module.value_head
        return [None] * len(hidden_BH) if head is None else head(hidden_BH).tolist()

    def _mask(self, hidden: Tensor) -> Tensor:
        """To be added to the scores: a mask of booleans is converted again by every layer."""
        mask = torch.zeros(hidden.shape, dtype=self._dtype, device=self.device)
        return mask.masked_fill_(hidden, torch.finfo(self._dtype).min)

    def read_tokens(
        self, ids_B1: Tensor, lengths_B: NDArray[np.int64], lags_B: NDArray[np.int64]
    ) -> Tensor:
        """Puts one more token of each of rows 0 … B-1 through the model.

        Args:
            lengths_B: tokens that the rows hold already.
            lags_B: from `PromptsRead`.

        Returns:
            Logits of the tokens that follow, as `PromptsRead.logits_BV`.
        """
        assert self._cache is not None
        length = int(lengths_B.max()) + 1
        positions_B = torch.from_numpy(lengths_B.copy()).to(self.device)
        self._cache.begin_decode(positions_B, length)
        ahead_B11T = torch.arange(length, device=self.device) > positions_B[:, None, None, None]
        mask_B11T = self._mask(ahead_B11T)
        position_ids_B = positions_B + torch.from_numpy(lags_B.copy()).to(self.device)
        with self._attention():
            logits_B1V = self._module.model(
                input_ids=ids_B1,
                attention_mask=mask_B11T,
                position_ids=position_ids_B[:, None],
                past_key_values=self._cache,
                use_cache=True,
            ).logits
        return self._module.speakable(logits_B1V[:, -1])


def copy_rows(
    models: Sequence[SteppedModel], moves: Sequence[tuple[int, int]], length: int
) -> None:
    """Copies the first `length` positions of cache rows onto others, in every model's cache.

    Args:
        moves: from, to; all are read before any is written.
    """
    moves = [(source, row) for source, row in moves if source != row]
    if not moves:
        return
    sources, rows = torch.tensor(moves, device=models[0].device).unbind(1)
    for model in models:
        model.copy_rows(sources, rows, length)
