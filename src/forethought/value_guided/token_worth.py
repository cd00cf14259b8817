"""What Q-SFT's probabilities say that tokens are worth, and the policy that follows from it."""

import torch
from torch import Tensor

from forethought.configs.acting import ActingConfig, SupportConfig
from forethought.losses.support import likelihood_ratios, support_mask
from forethought.value_guided.weighted import tilted


def weigh_by_likelihood(
    behavior_BV: Tensor,
    likelihood_BV: Tensor,
    acting: ActingConfig,
    *,
    support: SupportConfig,
    dummy: int | None = None,
) -> Tensor:
    """Logits of the acting policy.

        log π^(a|s) = log π_φ(a|s) + β w(a|s) + constant
        w = p_θ(a|s)                           "probability": Hong et al. 2024, Sec. 4.2
        w = clip(p_θ(a|s) / π_φ(a|s), 0, 1)    "ratio", which is Q* with a dummy token

    Outside π_φ's support w is 0. β = 0 is π_φ. What a nucleus leaves out comes far behind.

    Args:
        behavior_BV, likelihood_BV: logits of π_φ and p_θ, fp32.
        acting: β, what w is, and the nucleus.
        dummy: the token that p_θ puts on what no token is worth; it is worth nothing.

    Returns:
        [B, V], fp32.
    """
    logprobs_BV = torch.log_softmax(behavior_BV, -1)
    likelihood_logprobs_BV = torch.log_softmax(likelihood_BV, -1)
    support_BV = support_mask(
        logprobs_NV=logprobs_BV,
        top_p=support.top_p,
        min_probability=support.min_probability,
        dummy=dummy,
    )
    if acting.policy_extraction == "probability":
        worth_BV = likelihood_logprobs_BV.exp().masked_fill(~support_BV, 0.0)
    else:
        worth_BV = likelihood_ratios(
            likelihood_logprobs_NV=likelihood_logprobs_BV,
            behavior_logprobs_NV=logprobs_BV,
            support_NV=support_BV,
            floor=support.floor,
        ).clamp(max=1.0)
    return tilted(logprobs_BV, worth_BV, beta=acting.beta, top_p=acting.top_p)
