"""Action policy consistency (APC): thoughts go on to mean the action that they meant before."""

import torch
from torch import Tensor

from forethought.losses.checks import (
    require_axes,
    require_constant,
    require_float32,
    require_one_shape,
)


def action_consistency_loss(*, action_P: Tensor, reference_action_P: Tensor) -> Tensor:
    """How far the probability of the action, given the thoughts, has moved from the reference's.

        C = mean (π_θ(a⁺|x, T⁺) - π_ref(a⁺|x, T⁺))²

    InteractiveCOT, the term of Eq. 7 that κ multiplies; probabilities of whole actions,
    not log-probs, so that an action which was improbable from the start costs little.
    dC/d log π_θ = 2 π_θ (π_θ - π_ref) / P.

    Args:
        action_P: log π_θ(a⁺|x, T⁺) of the winners, summed over tokens, nats, fp32.
        reference_action_P: the reference's, no gradient.

    Returns:
        A scalar from 0 to 1.

    Raises:
        ValueError: not [P], shapes differ, not float32, or a gradient into the reference.
    """
    tensors = {"action_P": action_P, "reference_action_P": reference_action_P}
    require_axes("P", **tensors)
    require_one_shape(**tensors)
    require_float32(**tensors)
    require_constant(reference_action_P=reference_action_P)
    return (torch.exp(action_P) - torch.exp(reference_action_P)).square().mean()
