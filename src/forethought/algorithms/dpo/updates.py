"""What preference optimization learns from an iteration's pairs: losses, optimizer steps."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from forethought.algorithms.dpo.config import DPOConfig
from forethought.algorithms.dpo.samples import (
    DPOContext,
    Known,
    PairSample,
    PairTokens,
    lay_out_pairs,
    plan_pairs,
    responses_of,
)
from forethought.losses.online_preference import refuel_loss, xpo_loss
from forethought.losses.preference import (
    PreferenceLoss,
    Responses,
    dpo_loss,
    hinge_loss,
    ipo_loss,
    kto_loss,
    robust_dpo_loss,
    rpo_loss,
    simpo_loss,
)
from forethought.losses.thought_preference import (
    action_consistency_loss,
    action_weighted_loss,
    constant_action_loss,
)
from forethought.models.actor_critic import Scores
from forethought.training.optim import ScheduleSpan


def objective(
    chosen: Responses,
    rejected: Responses,
    score_gaps_P: Tensor,
    config: DPOConfig,
    reference_point: float,
) -> PreferenceLoss:
    """The loss that `loss_type` names.

    Args:
        score_gaps_P: by how much the chosen response's score is higher.
        reference_point: KTO's, nats.
    """
    match config.loss_type:
        case "sigmoid":
            return dpo_loss(chosen=chosen, rejected=rejected, beta=config.beta)
        case "constant_action":
            return constant_action_loss(chosen=chosen, rejected=rejected, beta=config.beta)
        case "apw":
            return action_weighted_loss(
                chosen=chosen,
                rejected=rejected,
                beta=config.beta,
                weight_gradient=config.weight_gradient,
                weight_normalization=config.weight_normalization,
                reference=config.weighted_reference,
            )
        case "ipo":
            return ipo_loss(chosen=chosen, rejected=rejected, beta=config.beta)
        case "robust":
            return robust_dpo_loss(
                chosen=chosen,
                rejected=rejected,
                beta=config.beta,
                label_smoothing=config.label_smoothing,
            )
        case "rpo":
            return rpo_loss(
                chosen=chosen, rejected=rejected, beta=config.beta, nll_weight=config.rpo_alpha
            )
        case "hinge":
            return hinge_loss(chosen=chosen, rejected=rejected, beta=config.beta)
        case "refuel":
            return refuel_loss(
                chosen=chosen, rejected=rejected, return_gaps_P=score_gaps_P, beta=config.beta
            )
        case "xpo":
            return xpo_loss(
                chosen=chosen, rejected=rejected, beta=config.beta, alpha=config.xpo_alpha
            )
        case "kto":
            return unpaired(chosen, rejected, config.beta, reference_point)
        case "simpo":
            return simpo_loss(
                chosen=chosen,
                rejected=rejected,
                beta=config.beta,
                simpo_gamma=config.simpo_gamma,
            )


def unpaired(
    chosen: Responses, rejected: Responses, beta: float, reference_point: float
) -> PreferenceLoss:
    """KTO: chosen responses are desirable and rejected ones are not, as many of each."""
    desirable_P = torch.ones_like(chosen.log_ratios, dtype=torch.bool)
    loss = kto_loss(
        log_ratios_B=torch.cat([chosen.log_ratios, rejected.log_ratios]),
        is_desirable_B=torch.cat([desirable_P, ~desirable_P]),
        reference_point=reference_point,
        beta=beta,
    )
    return PreferenceLoss(loss, (beta * (chosen.log_ratios - rejected.log_ratios)).detach())


class Statistics(NamedTuple):
    """Statistics of one iteration's updates, averaged over them."""

    preference_loss: float
    action_consistency: float
    preference_accuracy: float
    preference_margin: float
    chosen_log_ratio: float
    rejected_log_ratio: float
    chosen_action_probability: float
    rejected_action_probability: float
    gradient_norm: float


def improve(known: Known, context: DPOContext, iteration: int, span: ScheduleSpan) -> Statistics:
    """Epochs of optimizer steps over shuffled batches of pairs; none where there are no pairs.

    Batches are drawn from the pairs of all processes; each process does its own ones.
    """
    policy, updater, _, _, config, run = context
    policy.module.without_dropout()
    samples = known.samples
    count, first = sum(run.gather([len(samples)])), run.offset(len(samples))
    if count == 0:
        return Statistics(*[float("nan")] * len(Statistics._fields))
    totals = torch.zeros(len(Statistics._fields) - 1)
    norms: list[float] = []
    batches = -(-count // config.batch_size)
    nominal = config.passes * batches if config.data is not None else config.updates_per_iteration
    for epoch in range(config.passes):
        order = np.random.default_rng([config.seed, iteration, 2, epoch]).permutation(count)
        for batch in np.array_split(order, batches):
            mine = [samples[i - first] for i in batch if first <= i < first + len(samples)]
            done = len(norms) / (config.passes * batches)
            norms.append(
                updater.step(
                    micro_losses(mine, len(batch), known.reference_point, totals, context),
                    position=span.at(done) * nominal,
                )
            )
    means = run.sum(totals) / len(norms)
    return Statistics(*means.tolist(), gradient_norm=float(np.mean(norms)))


def micro_losses(
    samples: Sequence[PairSample],
    whole: int,
    reference_point: float,
    totals: Tensor,
    context: DPOContext,
) -> list[Callable[[], Tensor]]:
    """One function per micro-batch, giving its part of the global batch's loss.

    Args:
        samples: this process's part of the batch.
        whole: pairs in the global batch.
        reference_point: KTO's, nats.
        totals: the parts' statistics are added to it, in the order of `Statistics`.
    """
    policy, updater, _, _, config, run = context

    def part(indices: Sequence[int]) -> Tensor:
        batch = [samples[index] for index in indices]
        layout = lay_out_pairs(batch, policy.encoder, policy.device)
        with run.autocast():
            scores: Scores = updater.module(
                layout.tokens, temperature=config.rollout.sampling.temperature
            )
        chosen, rejected = responses_of(scores, layout)
        ranked = objective(chosen, rejected, layout.score_gaps_P, config, reference_point)
        consistency = consistency_of(chosen, rejected, layout, config)
        share = len(indices) / whole
        statistics = [
            ranked.loss,
            consistency,
            (ranked.margins_P > 0).float().mean(),
            ranked.margins_P.mean(),
            chosen.log_ratios.mean(),
            rejected.log_ratios.mean(),
            chosen.action_P.exp().mean(),
            rejected.action_P.exp().mean(),
        ]
        totals.add_(share * torch.stack(statistics).detach().cpu())
        return share * (ranked.loss + config.consistency_coefficient * consistency)

    return [
        partial(part, indices) for indices in plan_pairs(samples, config.compute.micro_batch_tokens)
    ]


def consistency_of(
    chosen: Responses, rejected: Responses, layout: PairTokens, config: DPOConfig
) -> Tensor:
    """APC, of the chosen responses (Eq. 7) or of both."""
    action_P, apc_action_P = chosen.action_P, layout.apc_action_B[layout.chosen_P]
    if config.consistency_sides == "both":
        action_P = torch.cat([action_P, rejected.action_P])
        apc_action_P = torch.cat([apc_action_P, layout.apc_action_B[layout.rejected_P]])
    return action_consistency_loss(action_P=action_P, reference_action_P=apc_action_P)
