"""Imitation of stored episodes: how a behaviour policy is made, whoever learns values beside it."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from forethought.config_file import OfflineConfig
from forethought.losses.cross_entropy import token_mean_cross_entropy
from forethought.policies.huggingface import HuggingFacePolicy
from forethought.training.episodes import Episode, Part, lay_out
from forethought.training.optim import Updater
from forethought.training.run import Run
from forethought.types import Measure


def learn_to_imitate(
    batch: Sequence[Episode],
    policy: HuggingFacePolicy,
    updater: Updater,
    config: OfflineConfig,
    run: Run,
) -> list[Measure]:
    """One optimiser step of a policy: cross-entropy of the data's tokens."""
    mine = batch[run.process :: run.processes]
    actions = sum(episode.actions for episode in batch)
    total = torch.zeros(())
    parts = lay_out(mine, policy.encoder, policy.device, config.compute.micro_batch_tokens)
    norm = updater.step([partial(imitate, part, actions, policy, run, total) for part in parts])
    policy.weights_changed()
    return [Measure("loss", float(run.sum(total))), Measure("gradient_norm", norm)]


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
