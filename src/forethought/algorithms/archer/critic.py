"""The critic of whole responses: the utterance-level MDP, the values in it, and their updates.

A state is everything before a response, an action is the whole response, and the next state is the
one before the response to come. Among an episode's tokens (`episodes.py`) the state is that of the
response's first token; the response is complete with its last one.

    action    a a a   b b        tokens of two responses
    first     *       *          their states: what V is asked about
    last          *     *        what Q is asked about: that token, where all before it are said
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.algorithms.archer.config import ArcherConfig
from forethought.losses.ilql import double_q_loss, expectile_loss
from forethought.offline.episodes import (
    Episode,
    gather_actions,
    lay_out,
    next_values,
    scatter_actions,
    transitions,
)
from forethought.offline.rows import RowBatch
from forethought.targets.reward_map import ENVIRONMENT_UNITS
from forethought.targets.token_values import td_targets
from forethought.training.optim import Updater
from forethought.training.phases import TARGET_SUMS, target_metrics
from forethought.training.run import Run
from forethought.types import Metric
from forethought.value_guided.models import PolicyWithValues


class CompletionBatch(NamedTuple):
    """The U responses among the N action tokens of one micro-batch."""

    rows: RowBatch
    is_first_N: Tensor
    is_last_N: Tensor
    is_known_U: Tensor
    """Bool: False where the episode was cut behind the response and nobody knows what followed."""

    def of_tokens(self) -> Tensor:
        """Which response each token belongs to: int64 [N]."""
        return self.is_first_N.long().cumsum(0) - 1


def mark_completions(
    episodes: Sequence[Episode], batches: Sequence[RowBatch], device: torch.device
) -> list[CompletionBatch]:
    """Where responses begin and end. A row holds whole responses, so the k-th beginning of a
    micro-batch and its k-th end are of the same one."""
    firsts: list[Tensor] = []
    lasts: list[Tensor] = []
    known: list[Tensor] = []
    for episode in episodes:
        ends = torch.tensor(episode.completion_lengths).cumsum(0)
        is_last_N = torch.zeros(episode.actions, dtype=torch.bool)
        is_last_N[ends - 1] = True
        is_known_N = torch.ones_like(is_last_N)
        is_known_N[-1] = episode.known_completions == len(episode.completion_lengths)
        firsts.append(is_last_N.roll(1))
        lasts.append(is_last_N)
        known.append(is_known_N)
    marks = (scatter_actions(episodes, batches, one) for one in (firsts, lasts, known))
    return [
        CompletionBatch(rows, first_N.to(device), last_N.to(device), known_N[last_N].to(device))
        for rows, first_N, last_N, known_N in zip(batches, *marks, strict=True)
    ]


def completion_targets(episode: Episode, values_N: Tensor, *, gamma: float) -> Tensor:
    """What Q of each response is to be, at the response's last token; 0 elsewhere.

        y = r + γ V(s')

    s' is the state before the next response. After the last one there is none where the
    environment ended; otherwise its value is what the recorder's critic said, and where there was
    none the response has no target (`AnswerBatch.is_known_U`).

    Args:
        values_N: V in the state of each token; only those of first tokens are asked for.
        gamma: per environment step; inside a response nothing is discounted.

    Returns:
        [N], in the environment's units.
    """
    moves = transitions(episode, ENVIRONMENT_UNITS, gamma=gamma, utterance_gamma=1.0)
    is_end_N = ~moves.is_inside_N & moves.is_known_N
    targets = td_targets(
        rewards_N=moves.rewards_N[is_end_N],
        discounts_N=moves.discounts_N[is_end_N],
        next_values_N=next_values(episode, values_N, ENVIRONMENT_UNITS)[is_end_N],
    )
    return torch.zeros_like(values_N).masked_scatter(is_end_N, targets)


class ArcherContext(NamedTuple):
    """What every update works with."""

    models: PolicyWithValues
    config: ArcherConfig
    run: Run


def completion_batches(
    episodes: Sequence[Episode], context: ArcherContext
) -> list[CompletionBatch]:
    """Micro-batches of the episodes' responses, on the policy's device."""
    policy = context.models.policy
    most = context.config.compute.micro_batch_tokens
    batches = lay_out(episodes, policy.encoder, policy.device, most)
    return mark_completions(episodes, batches, policy.device)


class CompletionStates(NamedTuple):
    """Last hidden states of the critic's layers, fp32: [U, H] each."""

    before_UH: Tensor
    """In which nothing of the response is said: V's."""
    within_UH: Tensor
    """In which all but its last token is said: that token's Q is Q of the whole response."""


def completion_states(completions: CompletionBatch, context: ArcherContext) -> CompletionStates:
    """One forward pass of the critic's layers."""
    critic = context.models.values
    assert critic is not None
    rows = completions.rows
    with context.run.autocast():
        hidden_NH = critic.action_hidden(rows.tokens, rows.is_action_BT)
    return CompletionStates(
        hidden_NH[completions.is_first_N].float(), hidden_NH[completions.is_last_N].float()
    )


class CompletionValues(NamedTuple):
    """Values of U responses by the critic, in units of return, without gradient."""

    slow_U: Tensor
    """min(Q̄1, Q̄2) of the response."""
    values_U: Tensor
    """V of its state."""


@torch.no_grad()
def target_values(completions: CompletionBatch, context: ArcherContext) -> CompletionValues:
    """Values of responses by the target network, and of their states."""
    assert context.models.values is not None
    heads, (before_UH, within_UH) = (
        context.models.values.value_head,
        completion_states(completions, context),
    )
    slow_U = of_last_tokens(heads.slow(within_UH), completions)
    return CompletionValues(slow_U, heads.value(before_UH).squeeze(-1))


def of_last_tokens(q_UV: Tensor, completions: CompletionBatch) -> Tensor:
    """Q of each response's last token."""
    tokens_U = completions.rows.actions()[completions.is_last_N]
    return q_UV.gather(1, tokens_U[:, None]).squeeze(1)


LOSSES = ("critic_loss", "q_loss", "expectile_loss", "q_gap")


class TargetBatch(NamedTuple):
    """Responses of one micro-batch, and the targets of their Q and their states' V; [U] each."""

    completions: CompletionBatch
    targets_U: Tensor
    slow_U: Tensor


def learn_critic(
    batch: Sequence[Episode], updater: Updater, context: ArcherContext
) -> list[Metric]:
    """One optimizer step of Q1, Q2 and V."""
    models, config, run = context
    assert models.values is not None
    mine = batch[run.process :: run.processes]
    found, sums = compute_targets(mine, completion_batches(mine, context), context)
    known = sum(episode.known_completions for episode in batch)
    totals = torch.zeros(len(LOSSES))
    norm = updater.step(
        [
            partial(critic_loss, one, known, context, totals)
            for one in found
            if one.completions.is_known_U.any()
        ]
    )
    models.values.value_head.follow(config.polyak_tau)
    means = zip(LOSSES, run.sum(totals).tolist(), strict=True)
    return [
        *(Metric(name, mean) for name, mean in means),
        Metric("gradient_norm", norm),
        *target_metrics(run.sum(sums)),
    ]


def compute_targets(
    episodes: Sequence[Episode], completions: Sequence[CompletionBatch], context: ArcherContext
) -> tuple[list[TargetBatch], Tensor]:
    """Targets of all responses, and sums of what is shown of them (`TARGET_SUMS`)."""
    values_of = [target_values(one, context) for one in completions]
    batches = [one.rows for one in completions]
    spread = [
        torch.zeros(len(one.is_first_N)).masked_scatter(one.is_first_N.cpu(), known.values_U.cpu())
        for one, known in zip(completions, values_of, strict=True)
    ]
    values = gather_actions(episodes, batches, spread)
    targets = [
        completion_targets(episode, values_N, gamma=context.config.gamma)
        for episode, values_N in zip(episodes, values, strict=True)
    ]
    sums = torch.zeros(len(TARGET_SUMS))
    for episode, values_N, targets_N in zip(episodes, values, targets, strict=True):
        numbers = (float(targets_N.sum()), episode.known_completions, float(values_N[0]))
        sums += torch.tensor([*numbers, sum(episode.rewards), 1.0])
    device = context.models.policy.device
    placed = scatter_actions(episodes, batches, targets)
    found = [
        TargetBatch(one, targets_N.to(device)[one.is_last_N], known.slow_U)
        for one, targets_N, known in zip(completions, placed, values_of, strict=True)
    ]
    return found, sums


def critic_loss(batch: TargetBatch, known: int, context: ArcherContext, totals: Tensor) -> Tensor:
    """This micro-batch's share of L = L_Q + L_V.

    Args:
        known: responses with a target in the global batch.
        totals: `LOSSES`, to which the shares are added.
    """
    completions, targets_U, slow_U = batch
    assert context.models.values is not None
    heads, (before_UH, within_UH) = (
        context.models.values.value_head,
        completion_states(completions, context),
    )
    first_U, second_U = (
        of_last_tokens(q(within_UH), completions) for q in (heads.first, heads.second)
    )
    values_U = heads.value(before_UH).squeeze(-1)
    counts_U = completions.is_known_U
    regression = double_q_loss(
        first_N=first_U[counts_U], second_N=second_U[counts_U], targets_N=targets_U[counts_U]
    )
    above = expectile_loss(
        values_N=values_U[counts_U],
        targets_N=slow_U[counts_U],
        expectile=context.config.expectile,
    )
    loss, weight = regression.loss + above, counts_U.sum() / known
    shown = torch.stack([loss, regression.loss, above, regression.gap])
    totals += (shown.detach() * weight).cpu()
    return loss * weight
