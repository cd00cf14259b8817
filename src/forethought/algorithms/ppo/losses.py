"""PPO's losses of one micro-batch, as the settings ask for them."""

import torch
from torch import Tensor

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.samples import Old
from forethought.losses.policy import PolicyLoss, clipped_policy_loss, thought_scaled_logprobs
from forethought.losses.thought_preference import action_consistency_loss
from forethought.losses.value import ValueLoss, clipped_value_loss
from forethought.models.actor_critic import Scores
from forethought.models.batching import TokenBatch


def policy_loss(scores: Scores, tokens: TokenBatch, old: Old, config: PPOConfig) -> PolicyLoss:
    """Clipped loss on λ-scaled log-probs (Eq. 4.3), the same λ on both sides of the ratio."""
    new_BT, old_BT = (
        thought_scaled_logprobs(
            logprobs_BT=logprobs_BT,
            thought_mask_BT=old.thought_mask_BT,
            action_mask_BT=tokens.mask_BT & ~old.thought_mask_BT,
            thought_weight=config.thought_weight,
        )
        for logprobs_BT in (scores.logprobs_BT, old.logprobs_BT)
    )
    if config.ratio == "step":
        return clipped_policy_loss(
            logprobs=new_BT.sum(1),
            old_logprobs=old_BT.sum(1),
            advantages=old.advantages_B,
            mask=None,
            clip=config.clip,
        )
    return clipped_policy_loss(
        logprobs=new_BT,
        old_logprobs=old_BT,
        advantages=old.advantages_B[:, None].expand_as(new_BT),
        mask=tokens.mask_BT,
        clip=config.clip,
        aggregation=config.loss_aggregation,
    )


def action_consistency(scores: Scores, tokens: TokenBatch, old: Old) -> Tensor:
    """How far p(a|T) of the actions taken is from the reference's (InteractiveCOT, Eq. 7); from
    what it was when they were taken where no reference is kept."""
    is_action_BT = tokens.mask_BT & ~old.thought_mask_BT
    return action_consistency_loss(
        action_P=torch.where(is_action_BT, scores.logprobs_BT, 0.0).sum(1),
        reference_action_P=torch.where(is_action_BT, old.reference_logprobs_BT, 0.0).sum(1),
    )


def value_loss(scores: Scores, old: Old, deviation: Tensor, config: PPOConfig) -> ValueLoss:
    """Clipped loss of the critic in units of the returns' deviation; 0 where there is none."""
    if scores.values_B is None:
        return ValueLoss(*torch.zeros(3, device=old.values_B.device))
    return clipped_value_loss(
        values_B=scores.values_B / deviation,
        old_values_B=old.values_B / deviation,
        returns_B=old.value_targets_B / deviation,
        clip=config.value_clip,
        mask_B=None,
    )
