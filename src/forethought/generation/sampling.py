"""One token for each row, from logits and a uniform number."""

from typing import NamedTuple

import torch
from torch import Tensor


class Drawn(NamedTuple):
    """One token for each row, and its log-probability."""

    ids_B: Tensor
    logprobs_B: Tensor


def draw_tokens(*, logits_BV: Tensor, temperatures_B: Tensor, uniforms_B: Tensor) -> Drawn:
    """Inverse-transform sampling: the first token at which the cumulated probability
    exceeds the uniform number.

    Args:
        logits_BV: any float type; log-probs are computed in fp32.
        temperatures_B: above 0 divides the logits; 0 takes the largest logit, with its
            log-probability at temperature 1.
        uniforms_B: in [0, 1), one per row.
    """
    greedy_B = temperatures_B == 0
    divisor_B = torch.where(greedy_B, 1.0, temperatures_B)
    logprobs_BV = torch.log_softmax(logits_BV.float() / divisor_B[:, None], dim=-1)
    cumulated_BV = logprobs_BV.exp().cumsum(-1, dtype=torch.float64)
    # Scaled by the total, which rounding leaves a little off 1.
    thresholds_B = uniforms_B.double() * cumulated_BV[:, -1]
    ids_B = torch.searchsorted(cumulated_BV, thresholds_B[:, None], right=True).squeeze(-1)
    ids_B = ids_B.clamp(max=logits_BV.shape[-1] - 1)
    if greedy_B.any():
        ids_B = torch.where(greedy_B, logits_BV.argmax(-1), ids_B)
    return Drawn(ids_B, logprobs_BV.gather(-1, ids_B[:, None]).squeeze(-1))
