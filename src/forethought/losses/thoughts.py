"""Log-prob of a completion whose thoughts weigh less than its action."""

import torch
from torch import Tensor

from forethought.losses.checks import require_axes, require_float32, require_one_shape


def thought_scaled_logprobs(
    *,
    logprobs_BT: Tensor,
    thought_mask_BT: Tensor,
    action_mask_BT: Tensor,
    thought_weight: float,
) -> Tensor:
    """Each token's part in the log-prob of the step.

        s_t = λ log p_t  on thought tokens,   log p_t  on action tokens,   0  elsewhere

    RL4VLM, Eq. 4.3, before its sum. Thoughts are an order of magnitude longer than
    the action, so that without λ they decide the ratio alone. A ratio needs the
    same λ on both sides: log p and log p_old both go through this function.

    λ = 0 leaves the action alone: thought tokens are then exactly 0, without
    gradient, even where a thought had probability 0.

    Args:
        logprobs_BT: of the sampled tokens, nats, fp32.
        thought_mask_BT: bool, the tokens before the `"action"` key.
        action_mask_BT: bool, the tokens from the `"action"` key to the end.
        thought_weight: λ in [0, 1].

    Returns:
        [B, T], nats, fp32.

    Raises:
        ValueError: not [B, T], shapes differ, a wrong dtype, a token that is both
            thought and action, or λ outside [0, 1].
    """
    require_axes("BT", logprobs_BT=logprobs_BT)
    require_float32(logprobs_BT=logprobs_BT)
    require_one_shape(
        logprobs_BT=logprobs_BT, thought_mask_BT=thought_mask_BT, action_mask_BT=action_mask_BT
    )
    if not thought_mask_BT.dtype == action_mask_BT.dtype == torch.bool:
        raise ValueError(
            f"masks: expected bool, got {thought_mask_BT.dtype} for thoughts "
            f"and {action_mask_BT.dtype} for actions"
        )
    shared = int((thought_mask_BT & action_mask_BT).sum())
    if shared > 0:
        raise ValueError(f"a token is thought or action, never both: got {shared} that are both")
    if not 0 <= thought_weight <= 1:
        raise ValueError(f"thought_weight: expected 0 to 1, got {thought_weight}")
    weight_BT = thought_weight * thought_mask_BT.float() + action_mask_BT.float()
    # Chosen, not multiplied, where the weight is 0: 0 times minus infinity is not 0.
    return torch.where(weight_BT > 0, weight_BT * logprobs_BT, 0.0)


def sequence_logprob(
    *,
    logprobs_BT: Tensor,
    thought_mask_BT: Tensor,
    action_mask_BT: Tensor,
    thought_weight: float,
) -> Tensor:
    """Log-prob of each step of a thinking agent.

        log π(y|x) := λ log π(T|x) + log π(a|x, T)

    RL4VLM, Eq. 4.3: the sum over tokens of `thought_scaled_logprobs`, which
    documents the arguments and what is refused.

    Returns:
        [B], nats, fp32.
    """
    scaled_BT = thought_scaled_logprobs(
        logprobs_BT=logprobs_BT,
        thought_mask_BT=thought_mask_BT,
        action_mask_BT=action_mask_BT,
        thought_weight=thought_weight,
    )
    return scaled_BT.sum(dim=1)
