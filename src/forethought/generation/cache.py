"""A preallocated key-value cache whose rows come and go independently.

Hugging Face's `DynamicCache` copies everything at every token, and `StaticCache` gives
all rows one common length. Here each row has a length of its own: a finished row leaves
and another takes its place. The layers return views, so the unmodified forward pass of
any decoder with plain attention layers runs on it.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

_LINE = 64
"""Bytes of a line of the processor's cache."""


class Further(NamedTuple):
    """Where tokens go that are written after what rows hold."""

    rows_B: Tensor
    positions_BS: Tensor


class RowLayer(CacheLayerMixin):
    """Keys and values of one attention layer: [rows, heads, capacity, head size]."""

    def __init__(self, rows: int, capacity: int) -> None:
        super().__init__()
        self.rows = rows
        self.capacity = capacity
        self.prefill_rows: tuple[Tensor, ...] = ()
        self.decode_rows = torch.empty(0)
        self.positions_B = torch.empty(0)
        self.further: Further | None = None
        self.length = 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.keys, self.values = (
            _zeros((self.rows, states.shape[1], self.capacity, states.shape[3]), like=states)
            for states in (key_states, value_states)
        )
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Stores [batch, heads, new tokens, head size]; returns what attention may see."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        assert self.keys is not None
        assert self.values is not None
        if self.prefill_rows:
            length = key_states.shape[2]
            for rows_B in self.prefill_rows:
                self.keys[:, :, :length].index_copy_(0, rows_B, key_states)
                self.values[:, :, :length].index_copy_(0, rows_B, value_states)
            return key_states, value_states
        if self.further is not None:
            rows_B, positions_BS = self.further
            self.keys[rows_B[:, None], :, positions_BS] = key_states.transpose(1, 2)
            self.values[rows_B[:, None], :, positions_BS] = value_states.transpose(1, 2)
            return self.keys[rows_B, :, : self.length], self.values[rows_B, :, : self.length]
        self.keys[self.decode_rows, :, self.positions_B] = key_states[:, :, 0]
        self.values[self.decode_rows, :, self.positions_B] = value_states[:, :, 0]
        active = len(self.decode_rows)
        return self.keys[:active, :, : self.length], self.values[:active, :, : self.length]

    def copy_rows(self, sources: Tensor, destinations: Tensor, length: int) -> None:
        """Copies the first `length` positions of some rows onto other rows."""
        for states in (self.keys, self.values):
            if states is not None:
                window = states[:, :, :length]
                window.index_copy_(0, destinations, window.index_select(0, sources))

    def grow(self, capacity: int) -> None:
        """Makes room for longer rows, keeping what is stored."""
        old_keys, old_values = self.keys, self.values
        self.capacity = capacity
        if old_keys is None or old_values is None:
            return
        self.lazy_initialization(old_keys, old_values)
        for new, old in ((self.keys, old_keys), (self.values, old_values)):
            assert new is not None
            new[:, :, : old.shape[2]] = old

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return (query_length if self.prefill_rows else self.length), 0

    def get_seq_length(self) -> int:
        return 0 if self.prefill_rows else self.length

    def get_max_length(self) -> int:
        return self.capacity


class RowCache(Cache):
    """All layers of one model, and the bookkeeping that they share."""

    def __init__(self, *, layers: int, rows: int, capacity: int) -> None:
        self.row_layers = [RowLayer(rows, capacity) for _ in range(layers)]
        super().__init__(layers=list(self.row_layers))
        self.capacity = capacity

    def begin_prefill(self, *rows_B: Tensor) -> None:
        """The next forward pass holds whole, right-padded prompts: the first for the first of
        these rows, and so on. More than one list of rows: each gets them all."""
        for layer in self.row_layers:
            layer.prefill_rows = rows_B

    def begin_further(self, rows_B: Tensor, positions_BS: Tensor, length: int) -> None:
        """The next forward pass holds, for each of these rows, S tokens that come after others.

        Args:
            positions_BS: where they go.
            length: positions that attention sees.
        """
        for layer in self.row_layers:
            layer.prefill_rows = ()
            layer.further, layer.length = Further(rows_B, positions_BS), length

    def begin_decode(self, positions_B: Tensor, length: int) -> None:
        """The next forward pass holds one token for each of rows 0 … B-1.

        Args:
            positions_B: where each row's token goes.
            length: positions that attention sees: the longest row, this token included.
        """
        rows_B = torch.arange(len(positions_B), device=positions_B.device)
        for layer in self.row_layers:
            layer.prefill_rows, layer.further = (), None
            layer.decode_rows, layer.positions_B, layer.length = rows_B, positions_B, length

    def copy_rows(self, sources: Tensor, destinations: Tensor, length: int) -> None:
        """Copies rows onto rows, in every layer."""
        for layer in self.row_layers:
            layer.copy_rows(sources, destinations, length)

    def ensure_capacity(self, length: int) -> None:
        """Grows, by at least half, when rows of `length` tokens would not fit."""
        if length > self.capacity:
            self.capacity = max(length, self.capacity * 3 // 2)
            for layer in self.row_layers:
                layer.grow(self.capacity)


def _zeros(shape: tuple[int, ...], *, like: Tensor) -> Tensor:
    """Zeros, since a masked position still meets the softmax weight 0, and 0 · NaN is NaN.

    On the CPU numpy's: it asks for huge pages, which torch does not, and the reading of the
    cache, the better part of a token step there, takes a fifth less time.
    """
    if like.device.type != "cpu":
        return like.new_zeros(shape)
    size = math.prod(shape) * like.element_size()
    raw = np.zeros(size + _LINE, dtype=np.uint8)
    start = -raw.ctypes.data % _LINE
    return torch.from_numpy(raw[start : start + size]).view(like.dtype).view(shape)
