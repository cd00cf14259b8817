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


class ObservationTokens(NamedTuple):
    """Tokens of the environment's observations, to be learned beside the responses."""

    mask_BT: Tensor
    """Bool: which they are."""
    weight: float
    """Weight of a token, beside one of a response."""
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
    """One optimizer step of a policy: cross-entropy of the rows' responses.

    Args:
        rows: the global batch.
        max_tokens: of a micro-batch.
        observation_loss_weight: what a token of the environment's observations weighs beside one of
            a response.

    Returns:
        Loss of the global batch, nats per token of its responses, and norm of the gradient; where
        observations weigh anything also theirs, nats per token.
    """
    actions, replies = sum(row.actions for row in rows), sum(row.replies for row in rows)
    total, observed = torch.zeros(()), torch.zeros(())
    mine = rows[run.process :: run.processes]
    losses: list[Callable[[], Tensor]] = []
    for b in lay_out_rows(mine, policy.encoder, policy.device, max_tokens):
        observations = None
        if observation_loss_weight:
            mask_BT = mark_replies(b, mine)
            observations = ObservationTokens(mask_BT, observation_loss_weight, observed)
        losses.append(
            partial(
                cloning_loss, b.tokens, b.is_action_BT, actions, policy, run, total, observations
            )
        )
    norm = updater.step(losses)
    policy.weights_changed()
    metrics = [Metric("loss", float(run.sum(total))), Metric("gradient_norm", norm)]
    if observation_loss_weight:
        metrics.append(Metric("observation_loss", float(run.sum(observed)) / max(1, replies)))
    return metrics


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
    observations: ObservationTokens | None = None,
) -> Tensor:
    """This part's share of the cross-entropy of responses (Q-SFT, Eq. 2) and of observations.

        L = -(Σ_responses log p + w Σ_observations log p) / tokens of responses

    With w > 0 the model learns beside what to do what the environment will say (implicit
    world modeling: Zhang et al. 2025, Agent Learning via Early Experience, arXiv 2510.08558).

    Args:
        is_action_BT: bool, [B, T]: the tokens of responses.
        actions: how many there are in the global batch, over all processes.
        total: a scalar to which the responses' share is added.
        observations: with their weight w; None: they are not learned.
    """
    module = policy.module.train()
    with run.autocast():
        scores = module(tokens)
    responded = _nats(scores.logprobs_BT, is_action_BT)
    total += responded.detach().cpu() / actions
    if observations is None or not observations.mask_BT.any():
        return responded / actions
    observed = _nats(scores.logprobs_BT, observations.mask_BT)
    observations.total.add_(observed.detach().cpu())
    return (responded + observations.weight * observed) / actions


def _nats(logprobs_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Summed over what counts."""
    result = token_mean_cross_entropy(logprobs_BT=logprobs_BT, mask_BT=mask_BT)
    return result.loss * result.token_count
