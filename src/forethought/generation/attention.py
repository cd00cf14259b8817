"""Attention of a token step: one query a row, over all that the row's cache holds.

PyTorch's fused attention is made for many queries; with one, a batched matrix product, a softmax
and a weighted sum are faster on the CPU. Any Hugging Face model that looks its attention up by name
(all but a few old ones) can use it; the others keep their own.
"""

from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

NAME = "forethought_token_step"
UNUSUAL = ("softcap", "s_aux", "position_bias")
"""Arguments that change what attention is, in some models."""


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """As Hugging Face's attention functions: [B, heads, 1, size] over [B, heads, T, size].

    Fewer key heads than query heads are shared by as many queries each (grouped queries).
    """
    (batch, heads, queries, size), (kv_heads, length) = query.shape, key.shape[1:3]
    if queries > 1 or attention_mask is None or any(others.get(n) is not None for n in UNUSUAL):
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **others
        )
    shared = (batch * kv_heads, heads // kv_heads)
    mask_N1T = attention_mask.expand(batch, kv_heads, 1, length).reshape(-1, 1, length)
    scores_NGT = torch.baddbmm(
        mask_N1T,
        query.reshape(*shared, size),
        key.flatten(0, 1).transpose(1, 2),
        alpha=size**-0.5 if scaling is None else scaling,
    )
    weights_NGT = scores_NGT.softmax(-1, dtype=torch.float32).to(value.dtype)
    return _sum_values(weights_NGT, value).view(batch, 1, heads, -1), None


class _Rows(NamedTuple):
    """Where a tensor [B, kv heads, T, size] lies in memory, as rows of `size` numbers."""

    shape: torch.Size
    batch_stride: int
    head_stride: int


def _sum_values(weights_NGT: Tensor, value: Tensor) -> Tensor:
    """Adds up values, each times its weight: [B * heads, size].

    PyTorch's sum over weighted rows of a table, made for embeddings, reads the cache about
    twice as fast as a matrix product with a single row does.
    """
    size = value.shape[3]
    between_rows, between_heads, *within = value.stride()
    are_rows = within == [size, 1] and between_rows % size == between_heads % size == 0
    if value.dtype != torch.float32 or not are_rows:
        return torch.bmm(weights_NGT, value.flatten(0, 1)).flatten(0, 1)
    rows = _Rows(value.shape, between_rows // size, between_heads // size)
    indices = _indices(rows, weights_NGT.shape[1])
    return functional.embedding_bag(
        indices.flatten(),
        value.as_strided((int(indices[-1, -1]) + 1, size), (size, 1)),
        torch.arange(0, indices.numel() + 1, indices.shape[1], dtype=torch.int32),
        mode="sum",
        per_sample_weights=weights_NGT.flatten(),
        include_last_offset=True,
    )


@lru_cache(maxsize=1)  # the same in every layer
def _indices(rows: _Rows, queries: int) -> Tensor:
    """Indices of the rows [B * heads, T] that each query head reads; `queries` share a key head."""
    batch, kv_heads, length, _ = (torch.arange(n, dtype=torch.int32) for n in rows.shape)
    starts_BK = batch[:, None] * rows.batch_stride + kv_heads * rows.head_stride
    return starts_BK.flatten().repeat_interleave(queries)[:, None] + length


AttentionInterface.register(NAME, attend)


class TokenStepAttention:
    """Lets a model use it for a while."""

    def __init__(self, model: PreTrainedModel) -> None:
        found: list[Any] = [m.config for m in model.modules() if hasattr(m, "config")]
        is_cpu = model.device.type == "cpu"
        self._configs: list[Any] = [
            config
            for config in {id(config): config for config in found}.values()
            if is_cpu and config._attn_implementation == "sdpa"
        ]

    @contextmanager
    def __call__(self) -> Generator[None]:
        for config in self._configs:
            config._attn_implementation_internal = NAME
        try:
            yield
        finally:
            for config in self._configs:
                config._attn_implementation_internal = "sdpa"
