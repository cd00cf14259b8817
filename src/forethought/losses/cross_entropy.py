"""Token-mean cross-entropy: the loss of supervised fine-tuning."""

from typing import NamedTuple

from torch import Tensor

from forethought.losses.aggregation import masked_mean
from forethought.losses.checks import checked_mask, require_axes, require_float32


class CrossEntropy(NamedTuple):
    loss: Tensor  # scalar, nats per token, to minimize
    token_count: Tensor  # scalar, int64: how many tokens the mean is over


def token_mean_cross_entropy(*, logprobs_BT: Tensor, mask_BT: Tensor) -> CrossEntropy:
    """How surprised the model is by the answer that it should have given.

        L = -sum_bt m_bt log p(y_bt | x_b, y_b<t) / sum_bt m_bt

    Maximum likelihood of the expert's completion given the prompt; the supervised
    stage before RL in RL4VLM, Appendix C.1. A long completion weighs more than a
    short one, token for token; to accumulate micro-batches, see `masked_mean`.

    Args:
        logprobs_BT: of the tokens of the data, nats, fp32.
        mask_BT: bool, True on completion tokens, False on prompt and padding.

    Raises:
        ValueError: not [B, T], shapes differ, a wrong dtype, or no token counts.
    """
    require_axes("BT", logprobs_BT=logprobs_BT)
    require_float32(logprobs_BT=logprobs_BT)
    mask_BT = checked_mask(mask_BT, like=logprobs_BT)
    loss = -masked_mean(values=logprobs_BT, mask=mask_BT)
    return CrossEntropy(loss, token_count=mask_BT.sum())
