"""One model and its cache: whole prompts at once, then one token a row and step."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from forethought.generation.attention import TokenStepAttention
from forethought.generation.cache import RowCache
from forethought.generation.last_layer import LastLayer
from forethought.models.actor_critic import ActorCritic
from forethought.models.batching import TokenBatch
from forethought.models.encoding import Encoder


class PromptsRead(NamedTuple):
    """What a model makes of B prompts."""

    logits_BV: Tensor
    """Of the first token of the answer, placeholders ruled out, fp32."""
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
        self._device = actor_critic.model.device
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
        ends_B = torch.tensor([length - 1 for length in lengths], device=self._device)

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
        head = self._module.value_head
        values: list[float | None] = [None] * len(lengths)
        if head is not None:
            values = head(hidden_BH).tolist()
        lags = [0] * len(lengths)
        if positions is not None:
            lags = [
                int(positions[:, index, :length].max()) + 1 - length
                for index, length in enumerate(lengths)
            ]
        return PromptsRead(logits_BV, values, lags)

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
        positions_B = torch.from_numpy(lengths_B.copy()).to(self._device)
        self._cache.begin_decode(positions_B, length)
        ahead_B11T = torch.arange(length, device=self._device) > positions_B[:, None, None, None]
        # To be added to the scores: a mask of booleans is converted anew by every layer.
        mask_B11T = torch.zeros(ahead_B11T.shape, dtype=self._dtype, device=self._device)
        mask_B11T.masked_fill_(ahead_B11T, torch.finfo(self._dtype).min)
        position_ids_B = positions_B + torch.from_numpy(lags_B.copy()).to(self._device)
        with self._attention():
            logits_B1V = self._module.model(
                input_ids=ids_B1,
                attention_mask=mask_B11T,
                position_ids=position_ids_B[:, None],
                past_key_values=self._cache,
                use_cache=True,
            ).logits
        return self._module.speakable(logits_B1V[:, -1])
