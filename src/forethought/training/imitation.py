"""Imitation: an optimiser step on answers that are given."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from forethought.config_file import OfflineConfig
from forethought.losses.cross_entropy import token_mean_cross_entropy
from forethought.policies.batching import TokenBatch
from forethought.policies.huggingface import HuggingFacePolicy
from forethought.training.conversation import Row, lay_out_rows
from forethought.training.episodes import Episode
from forethought.training.optim import Updater
from forethought.training.run import Run
from forethought.types import Measure


def learn_to_imitate(
    rows: Sequence[Row],
    actions: int,
    policy: HuggingFacePolicy,
    updater: Updater,
    run: Run,
    max_tokens: int,
) -> list[Measure]:
    """One optimiser step of a policy: cross-entropy of the rows' actions.

    Args:
        rows: this process's part of the global batch.
        actions: tokens of the global batch that are learned from, over all processes.
        max_tokens: of a micro-batch.

    Returns:
        Loss of the global batch, nats per token, and norm of its gradient.
    """
    total = torch.zeros(())
    batches = lay_out_rows(rows, policy.encoder, policy.device, max_tokens)
    norm = updater.step(
        [partial(imitate, b.tokens, b.is_action_BT, actions, policy, run, total) for b in batches]
    )
    policy.weights_changed()
    return [Measure("loss", float(run.sum(total))), Measure("gradient_norm", norm)]


def learn_to_imitate_episodes(
    batch: Sequence[Episode],
    policy: HuggingFacePolicy,
    updater: Updater,
    config: OfflineConfig,
    run: Run,
) -> list[Measure]:
    """The same on a global batch of stored episodes, whoever learns values beside the policy."""
    rows = [row for episode in batch[run.process :: run.processes] for row in episode.rows]
    actions = sum(episode.actions for episode in batch)
    return learn_to_imitate(rows, actions, policy, updater, run, config.compute.micro_batch_tokens)


def imitate(
    tokens: TokenBatch,
    is_action_BT: Tensor,
    actions: int,
    policy: HuggingFacePolicy,
    run: Run,
    total: Tensor,
) -> Tensor:
    """This part's share of the cross-entropy of the actions (Q-SFT, Eq. 2).

    Args:
        is_action_BT: bool, [B, T]: which tokens are learned from.
        actions: how many there are in the global batch, over all processes.
        total: a scalar to which the share is added.
    """
    module = policy.module.train()
    with run.accelerator.autocast():
        scores = module(tokens)
    result = token_mean_cross_entropy(logprobs_BT=scores.logprobs_BT, mask_BT=is_action_BT)
    share = result.loss * result.token_count / actions
    total += share.detach().cpu()
    return share
