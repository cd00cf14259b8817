"""Imitation of stored episodes: how a behaviour policy is made, whoever learns values beside it."""

from torch import Tensor

from forethought.losses.cross_entropy import token_mean_cross_entropy
from forethought.policies.huggingface import HuggingFacePolicy
from forethought.training.episodes import Part
from forethought.training.run import Run


def imitate(part: Part, actions: int, policy: HuggingFacePolicy, run: Run, total: Tensor) -> Tensor:
    """This part's share of the cross-entropy of the data's tokens (Q-SFT, Eq. 2).

    Args:
        actions: tokens of the global batch, over all processes.
        total: a scalar to which the share is added.
    """
    module = policy.module.train()
    with run.accelerator.autocast():
        scores = module(part.tokens)
    result = token_mean_cross_entropy(logprobs_BT=scores.logprobs_BT, mask_BT=part.is_action_BT)
    share = result.loss * result.token_count / actions
    total += share.detach().cpu()
    return share
