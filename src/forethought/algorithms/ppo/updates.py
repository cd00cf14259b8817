"""What λ-PPO learns from an iteration's steps: batches, losses, optimizer steps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.samples import Old, Sample, lay_out, plan
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.losses.elements import masked_mean
from forethought.losses.ppo import (
    PolicyLoss,
    ValueLoss,
    clipped_policy_loss,
    clipped_value_loss,
    kl_to_reference,
    thought_scaled_logprobs,
    truncated_importance_weights,
)
from forethought.losses.thought_preference import action_consistency_loss
from forethought.models.actor_critic import Scores
from forethought.models.batching import Rows, TokenBatch
from forethought.training.engines import measure_mismatch, require_on_policy
from forethought.training.optim import ScheduleSpan, Updater
from forethought.training.reference import Reference
from forethought.training.run import Run
from forethought.types import Metric


class PPOContext(NamedTuple):
    """What every part of an iteration works with."""

    policy: HuggingFacePolicy
    updater: Updater
    config: PPOConfig
    run: Run
    reference: Reference | None = None
    """The model as it was at the start, where the policy is to stay near it."""


class Statistics(NamedTuple):
    """Statistics of one iteration's updates, averaged over them."""

    policy_loss: float
    value_loss: float
    entropy: float
    reference_kl: float
    action_consistency: float
    approximate_kl: float
    clip_fraction: float
    value_clip_fraction: float
    gradient_norm: float


def recompute_logprobs(
    samples: Sequence[Sample], context: PPOContext
) -> tuple[list[Sample], float]:
    """Scores the samples with the weights that acted, as training will score them.

    Returns:
        The samples with recomputed log-probs and values, so that the first ratio is 1
        also where sampling rounds differently (bf16); and the largest |ratio - 1|
        between sampled and recomputed.

    Raises:
        OffPolicyError: the two differ in fp32: prompt, image, ids or weights are not
            those of the rollout. Engines elsewhere may round as they like: `weigh_mismatch`.
    """
    policy, updater, config, run, _ = context
    recomputed = list(samples)
    largest = 0.0
    policy.module.eval()
    for rows in plan(samples, config.compute.micro_batch_tokens):
        tokens, old = lay_out(samples, rows, policy.encoder, policy.device)
        with torch.no_grad(), run.autocast():
            scores: Scores = updater.module(tokens, temperature=config.rollout.sampling.temperature)
        largest = max(largest, float(policy_loss(scores, tokens, old, config).maximum_deviation))
        old = as_scored(old, scores)
        for position, index in enumerate(chain.from_iterable(rows)):
            recomputed[index] = samples[index]._replace(
                old_logprobs=old.logprobs_BT[position][tokens.mask_BT[position]].tolist(),
                old_value=float(old.values_B[position]),
            )
    largest = max(run.gather([largest]))
    require_on_policy(largest, config.compute, config.generation)
    return recomputed, largest


def as_scored(old: Old, scores: Scores) -> Old:
    """Log-probs and values by the weights that acted, as training computes them."""
    values_B = old.values_B if scores.values_B is None else scores.values_B.detach()
    return old._replace(logprobs_BT=scores.logprobs_BT.detach(), values_B=values_B)


def weigh_mismatch(
    sampled: Sequence[Sample], rescored: Sequence[Sample], context: PPOContext
) -> tuple[list[Sample], list[Metric]]:
    """How far engines' log-probs are from the trainer's, and the samples weighted accordingly.

    Args:
        sampled: with the log-probs that the engines gave.
        rescored: the same with those of the trainer.

    Returns:
        The recomputed samples, with importance weights where `generation.importance_cap` is set;
        and mean and largest |log π - log π_engine| of a token and the mean k3 estimate of
        KL(π_engine || π), nats, over all processes. Without engines, no metric.

    Raises:
        OffPolicyError: they differ so much that an engine has other weights than it says.
    """
    config, run = context.config.generation, context.run
    if not config.engine:
        return list(rescored), []
    weighted: list[Sample] = []
    differences: list[float] = []
    for before, after in zip(sampled, rescored, strict=True):
        logprobs_T = torch.tensor(after.old_logprobs)
        sampled_T = torch.tensor(before.old_logprobs)
        differences += (logprobs_T - sampled_T).tolist()
        if config.importance_cap is not None:
            is_step = context.config.ratio == "step"
            importance_T = truncated_importance_weights(
                logprobs=logprobs_T.sum()[None] if is_step else logprobs_T,
                sampled_logprobs=sampled_T.sum()[None] if is_step else sampled_T,
                cap=config.importance_cap,
            ).expand_as(logprobs_T)
            after = after._replace(importance=importance_T.tolist())
        weighted.append(after)
    return weighted, measure_mismatch(differences, config, run)


def improve(
    samples: Sequence[Sample], context: PPOContext, iteration: int, span: ScheduleSpan
) -> tuple[Statistics, float]:
    """Epochs of optimizer steps over shuffled batches; while it warms up, of the critic alone.

    Batches are drawn from the samples of all processes; each process does its own ones.

    Args:
        span: of the schedule of learning rates.

    Returns:
        Statistics; and, with `scores_in_update`, the largest |ratio - 1| between the log-probs
        that were sampled and those before the one update, else 0.

    Raises:
        OffPolicyError: as in `recompute_logprobs`. The step is made by then; nothing of it is
            logged, saved or published.
    """
    policy, updater, config, run, _ = context
    policy.module.without_dropout()
    sizes = run.gather([len(sample.old_logprobs) for sample in samples])
    first = run.offset(len(samples))
    totals = Totals()
    norms: list[float] = []
    updates = config.updates_per_iteration
    is_warming_up = config.has_critic and iteration < config.critic_warmup
    for epoch in range(config.epochs):
        order = np.random.default_rng([config.seed, iteration, epoch]).permutation(len(sizes))
        for batch in np.array_split(order, updates // config.epochs):
            mine = [samples[i - first] for i in batch if first <= i < first + len(samples)]
            whole = BatchSize(steps=len(batch), tokens=sum(sizes[i] for i in batch))
            losses = micro_losses(mine, whole, totals, context, critic_alone=is_warming_up)
            position = span.at(len(norms) / updates) * updates
            norms.append(updater.step(losses, position=position, critic_alone=is_warming_up))
    policy.weights_changed()
    largest = max(run.gather([totals.max_ratio_error]))
    require_on_policy(largest, config.compute, config.generation)
    means = run.sum(totals.sums) / len(norms)
    return Statistics(*means.tolist(), gradient_norm=float(np.mean(norms))), largest


@dataclass
class Totals:
    """What micro-batches have in all."""

    sums: Tensor = field(default_factory=lambda: torch.zeros(len(Statistics._fields) - 1))
    """Of `Statistics`, in their order: all but the gradient's norm."""

    max_ratio_error: float = 0.0
    """Largest |ratio - 1| before the update, where nothing was scored before it."""


class BatchSize(NamedTuple):
    """Size of a global batch, over all processes."""

    steps: int
    tokens: int


def micro_losses(
    samples: Sequence[Sample],
    whole: BatchSize,
    totals: Totals,
    context: PPOContext,
    *,
    critic_alone: bool = False,
) -> list[Callable[[], Tensor]]:
    """One function per micro-batch, giving its part of the global batch's loss.

    Args:
        samples: this process's part of the batch.
        whole: the global batch's size.
        totals: the parts' statistics are added to it.
        critic_alone: whether nothing but the value head is to move.
    """
    policy, updater, config, run, _ = context
    pull = config.kl_coefficient if config.kl_use == "loss" else 0.0
    deviation = policy.module.returns_deviation

    def part(rows: Rows) -> Tensor:
        tokens, old = lay_out(samples, rows, policy.encoder, policy.device)
        with run.autocast():
            scores: Scores = updater.module(
                tokens,
                temperature=config.rollout.sampling.temperature,
                entropy_gradient=config.entropy_coefficient > 0,
                critic_gradient=config.critic_gradient == "model" and not critic_alone,
            )
        if config.scores_in_update:
            ratio_error = float(policy_loss(scores, tokens, old, config).maximum_deviation)
            totals.max_ratio_error = max(totals.max_ratio_error, ratio_error)
            old = as_scored(old, scores)
        policy_part = policy_loss(scores, tokens, old, config)
        value_part = value_loss(scores, old, deviation, config)
        entropy = masked_mean(values=scores.entropies_BT, mask=tokens.mask_BT)
        reference_kl = kl_to_reference(
            logprobs_BT=scores.logprobs_BT,
            reference_logprobs_BT=old.reference_logprobs_BT,
            mask_BT=tokens.mask_BT,
        )
        consistency = action_consistency(scores, tokens, old)
        by_step, by_token = (
            len(tokens.mask_BT) / whole.steps,
            int(tokens.mask_BT.sum()) / whole.tokens,
        )
        by_ratio = by_step if config.ratio == "step" else by_token
        by_loss = by_ratio if config.loss_aggregation == "token_mean" else by_step
        totals.sums.add_(
            torch.stack(
                [
                    policy_part.loss.detach() * by_loss,
                    value_part.loss.detach() * by_step,
                    entropy.detach() * by_token,
                    reference_kl.detach() * by_token,
                    consistency.detach() * by_step,
                    policy_part.approximate_kl * by_ratio,
                    policy_part.clip_fraction * by_ratio,
                    value_part.clip_fraction * by_step,
                ]
            ).cpu()
        )
        of_critic = by_step * config.value_coefficient * value_part.loss
        if critic_alone:
            return of_critic
        return (
            by_loss * policy_part.loss
            + of_critic
            + by_step * config.consistency_coefficient * consistency
            + by_token * (pull * reference_kl - config.entropy_coefficient * entropy)
        )

    return [partial(part, rows) for rows in plan(samples, config.compute.micro_batch_tokens)]


def summarize_updates(statistics: Statistics, config: PPOConfig) -> list[Metric]:
    """The updates' statistics; nothing is said about a critic or a reference that is not there."""
    of_critic = () if config.has_critic else ("value_loss", "value_clip_fraction")
    of_reference = () if config.has_reference else ("reference_kl", "action_consistency")
    return [
        Metric(name, value)
        for name, value in statistics._asdict().items()
        if name not in (*of_critic, *of_reference)
    ]


def policy_loss(scores: Scores, tokens: TokenBatch, old: Old, config: PPOConfig) -> PolicyLoss:
    """Clipped loss on λ-scaled log-probs (Eq. 4.3), the same λ on both sides of the ratio.

    Importance weights, which are positive, count as a part of the advantage: the minimum of the
    clipped loss is the same with them inside and outside.
    """
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
            advantages=old.advantages_B * old.importance_BT.amax(1),  # one weight for all tokens
            mask=None,
            clip=config.clip,
        )
    return clipped_policy_loss(
        logprobs=new_BT,
        old_logprobs=old_BT,
        advantages=old.advantages_B[:, None] * old.importance_BT,
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
