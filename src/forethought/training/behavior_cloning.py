"""Behavior cloning: an optimizer step on completions that are given."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.configs.contract import OfflineConfig
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.losses.cross_entropy import token_mean_cross_entropy
from forethought.models.batching import TokenBatch
from forethought.offline.episodes import Episode
from forethought.offline.rows import Row, lay_out_rows, mark_replies
from forethought.training.optim import Updater
from forethought.training.run import Run
from forethought.types import Metric


class Replies(NamedTuple):
    """What the world said, to be learned beside the answers."""

    is_reply_BT: Tensor
    """Bool."""
    weight: float
    """Of a token, beside one of an answer."""
    total: Tensor
    """A scalar to which their nats are added."""


def clone_behavior(
    rows: Sequence[Row],
    policy: HuggingFacePolicy,
    updater: Updater,
    run: Run,
    max_tokens: int,
    *,
    observation_loss_weight: float = 0.0,
) -> list[Metric]:
    """One optimizer step of a policy: cross-entropy of the rows' answers.

    Args:
        rows: the global batch.
        max_tokens: of a micro-batch.
        observation_loss_weight: what a token of the world's replies weighs beside one of an answer.

    Returns:
        Loss of the global batch, nats per token of its answers, and norm of the gradient; where
        replies weigh anything also theirs, nats per token.
    """
    actions, replies = sum(row.actions for row in rows), sum(row.replies for row in rows)
    total, replied = torch.zeros(()), torch.zeros(())
    mine = rows[run.process :: run.processes]
    losses: list[Callable[[], Tensor]] = []
    for b in lay_out_rows(mine, policy.encoder, policy.device, max_tokens):
        told = None
        if observation_loss_weight:
            told = Replies(mark_replies(b, mine), observation_loss_weight, replied)
        losses.append(
            partial(cloning_loss, b.tokens, b.is_action_BT, actions, policy, run, total, told)
        )
    norm = updater.step(losses)
    policy.weights_changed()
    measures = [Metric("loss", float(run.sum(total))), Metric("gradient_norm", norm)]
    if observation_loss_weight:
        measures.append(Metric("observation_loss", float(run.sum(replied)) / max(1, replies)))
    return measures


def clone_episodes(
    batch: Sequence[Episode],
    policy: HuggingFacePolicy,
    updater: Updater,
    config: OfflineConfig,
    run: Run,
) -> list[Metric]:
    """The same on a global batch of stored episodes, whoever learns values beside the policy."""
    rows = [row for episode in batch for row in episode.rows]
    return clone_behavior(rows, policy, updater, run, config.compute.micro_batch_tokens)


def cloning_loss(
    tokens: TokenBatch,
    is_action_BT: Tensor,
    actions: int,
    policy: HuggingFacePolicy,
    run: Run,
    total: Tensor,
    replies: Replies | None = None,
) -> Tensor:
    """This part's share of the cross-entropy of the answers (Q-SFT, Eq. 2), and of the replies.

        L = -(Σ_answers log p + w Σ_replies log p) / tokens of answers

    With w > 0 the model learns beside what to do what the world will say (implicit world
    modeling: Zhang et al. 2025, Agent Learning via Early Experience, arXiv 2510.08558).

    Args:
        is_action_BT: bool, [B, T]: the tokens of answers.
        actions: how many there are in the global batch, over all processes.
        total: a scalar to which the answers' share is added.
        replies: with their weight w; None: they are not learned.
    """
    module = policy.module.train()
    with run.autocast():
        scores = module(tokens)
    answered = _nats(scores.logprobs_BT, is_action_BT)
    total += answered.detach().cpu() / actions
    if replies is None or not replies.is_reply_BT.any():
        return answered / actions
    replied = _nats(scores.logprobs_BT, replies.is_reply_BT)
    replies.total.add_(replied.detach().cpu())
    return (answered + replies.weight * replied) / actions


def _nats(logprobs_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Summed over what counts."""
    result = token_mean_cross_entropy(logprobs_BT=logprobs_BT, mask_BT=mask_BT)
    return result.loss * result.token_count
