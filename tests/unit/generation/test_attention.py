"""Attention of one query a row equals PyTorch's own, however the values lie in memory."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from forethought.generation.attention import attend

ROWS, KV_HEADS, CAPACITY, SIZE = 5, 2, 9, 4
LENGTH = 7


def of_a_cache(values: Tensor) -> Tensor:
    """A window onto longer and more rows; what lies outside it must not be read."""
    cache = torch.full((ROWS + 1, KV_HEADS, CAPACITY, SIZE), torch.nan, dtype=values.dtype)
    cache[1:, :, :LENGTH] = values
    return cache[1:, :, :LENGTH]


def of_a_projection(values: Tensor) -> Tensor:
    """As a layer computes them: the heads of a position lie side by side."""
    return values.transpose(1, 2).contiguous().transpose(1, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("queries", [1, 3], ids=["own keys", "three heads share keys"])
@pytest.mark.parametrize("place", [of_a_cache, of_a_projection, Tensor.contiguous])
def test_equals_fused_attention(
    place: Callable[[Tensor], Tensor], queries: int, dtype: torch.dtype
) -> None:
    random = torch.Generator().manual_seed(0)
    shape = (ROWS, KV_HEADS, LENGTH, SIZE)
    keys, values = (torch.randn(shape, generator=random).to(dtype) for _ in range(2))
    query = torch.randn(ROWS, KV_HEADS * queries, 1, SIZE, generator=random).to(dtype)
    ends_B = torch.tensor([1, 7, 4, 6, 2])
    seen_B11T = torch.arange(LENGTH) < ends_B[:, None, None, None]
    mask_B11T = torch.zeros(seen_B11T.shape, dtype=dtype)
    mask_B11T.masked_fill_(~seen_B11T, torch.finfo(dtype).min)
    output_B1HS, _ = attend(nn.Module(), query, place(keys), place(values), mask_B11T)
    expected_BH1S = scaled_dot_product_attention(query, keys, values, seen_B11T, enable_gqa=True)
    tolerance = 1e-6 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(
        output_B1HS, expected_BH1S.transpose(1, 2), atol=tolerance, rtol=tolerance
    )
