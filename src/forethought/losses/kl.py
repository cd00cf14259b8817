"""Divergence from a reference policy, estimated on the tokens that were sampled."""

import torch
from torch import Tensor

from forethought.losses.aggregation import masked_mean
from forethought.losses.checks import (
    checked_mask,
    require_axes,
    require_constant,
    require_float32,
    require_one_shape,
)


def kl_to_reference(
    *, logprobs_BT: Tensor, reference_logprobs_BT: Tensor, mask_BT: Tensor
) -> Tensor:
    """Mean per token of an estimate of KL(pi || pi_ref) that is never negative.

        kl_t = exp(d_t) - 1 - d_t,   d_t = log pi_ref(y_t) - log pi(y_t)

    Schulman 2020, "Approximating KL divergence", k3; GRPO's Eq. 4 (Shao et al. 2024).
    Unbiased where y_t is drawn from pi. Its gradient, 1 - exp(d_t) per log-prob, pulls a
    token back to the reference's probability from either side, and is 0 where both agree.

    Args:
        logprobs_BT: under the policy that is trained, nats, fp32.
        reference_logprobs_BT: under the reference, likewise, without gradient, at the same
            temperature.
        mask_BT: bool, True where the token counts; what is masked may hold anything.

    Returns:
        A scalar, nats per token.

    Raises:
        ValueError: shapes differ, a tensor is not fp32, the reference carries a gradient, or
            no token counts.
    """
    require_axes("BT", logprobs_BT=logprobs_BT)
    require_one_shape(logprobs_BT=logprobs_BT, reference_logprobs_BT=reference_logprobs_BT)
    require_float32(logprobs_BT=logprobs_BT, reference_logprobs_BT=reference_logprobs_BT)
    require_constant(reference_logprobs_BT=reference_logprobs_BT)
    mask_BT = checked_mask(mask_BT, like=logprobs_BT)
    gap_BT = torch.where(mask_BT, reference_logprobs_BT - logprobs_BT, 0.0)
    return masked_mean(values=gap_BT.expm1() - gap_BT, mask=mask_BT)
