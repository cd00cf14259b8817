"""Step-wise preference optimization of thoughts and actions (InteractiveCOT).

One iteration: act, pair, improve. Equation numbers are the paper's. Two answers to one prompt
are compared by how the episode went on from there; the reference is the model that the run
started from.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from forethought.algorithms.dpo.config import DPOConfig
from forethought.algorithms.dpo.loss_types import objective
from forethought.algorithms.dpo.pairing import (
    Collectors,
    Gathered,
    gather,
    make_collectors,
    places,
    stored_pairs,
)
from forethought.algorithms.dpo.samples import (
    PairSample,
    PairTokens,
    answers_of,
    lay_out_pairs,
    plan_pairs,
)
from forethought.algorithms.dpo.scoring import DPOContext, Known, ask_reference
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.losses.preference import Answers
from forethought.losses.thought_preference import action_consistency_loss
from forethought.models.actor_critic import Scores
from forethought.rollouts.collector import Collected
from forethought.targets.pairs import Pair
from forethought.training.optim import ScheduleSpan
from forethought.training.reference import (
    ANCHOR_FILE,
    Reference,
    load_reference,
    start_reference,
)
from forethought.training.run import Existing, Run, advance, open_run
from forethought.training.start import start
from forethought.training.summary import (
    Stopwatch,
    summarize_actions,
    summarize_collection,
    warn_if_all_invalid,
)
from forethought.types import Metric


class Statistics(NamedTuple):
    """Of one iteration's updates, averaged over them."""

    preference_loss: float
    action_consistency: float
    preference_accuracy: float
    preference_margin: float
    winner_log_ratio: float
    loser_log_ratio: float
    winner_action_probability: float
    loser_action_probability: float
    gradient_norm: float


def train_dpo(config: DPOConfig, *, existing: Existing = "refuse") -> Path:
    """Trains, and returns the run folder.

    Raises:
        ForethoughtError: whatever a person can mend; `OffPolicyError` if sampled and
            recomputed log-probs differ.
    """
    with open_run(config, existing) as run:
        slots = run.share_of(config.rollout.num_envs, "rollout.num_envs")
        world, policy = start(config, run, slots=slots, critic=False)
        folder = run.checkpoint
        reference = load_reference(policy, folder) if folder else start_reference(policy)
        anchor = open_anchor(policy, reference, config, run)
        stored = stored_pairs(config, run) if config.data is not None else None
        total = config.iterations * updates_in_an_iteration(config, stored, run)
        updater = run.make_updater(policy, config.optimizer, total_steps=total)
        context = DPOContext(policy, updater, reference, anchor, config, run)
        iteration = run.steps_done
        played = run.progress.environment_steps if run.progress else 0
        bar = run.bar("dpo", config.total_steps if stored is None else config.iterations)
        bar.update(played if stored is None else iteration)
        with world.runner(slots if stored is None else 1, config.environment.workers) as runner:
            collectors = make_collectors(config, policy, world, runner, run, partial(advance, bar))
            while config.has_next_iteration(iteration, played) and not run.is_stopped:
                watch = Stopwatch()
                gathered = act(collectors, stored, context, iteration)
                watch.lap("collect_s")
                known = ask_reference(draw(gathered.pairs, context, iteration), context)
                watch.lap("reference_s")
                span = schedule_span(config, iteration, played, gathered.steps)
                statistics = improve(known, context, iteration, span)
                # Also without an update, lest prompts that were read before a kill be read anew.
                policy.weights_changed()
                watch.lap("update_s")
                metrics = summarize(gathered, known, statistics, context)
                run.record(iteration + 1, metrics, watch.laps)
                warn_if_all_invalid(iteration, metrics, run, config.model)
                if stored is None:
                    run.keep(gathered.collected.trajectories, iteration + 1)
                    run.keep_pairs(places(gathered), iteration + 1)
                else:
                    bar.update()
                iteration, played = iteration + 1, played + gathered.steps
                if config.ref_model_sync_every and iteration % config.ref_model_sync_every == 0:
                    reference.refresh()
                is_last = run.is_stopped or not config.has_next_iteration(iteration, played)
                if is_last or iteration % config.checkpoint_every == 0:
                    run.save(
                        policy,
                        updater,
                        step=iteration,
                        cursors=collectors.whole.cursors() if stored is None else (),
                        reference=reference,
                        anchor=None if anchor is reference else anchor,
                        environment_steps=played,
                    )
        bar.close()
        return run.folder.path


def open_anchor(
    policy: HuggingFacePolicy, reference: Reference, config: DPOConfig, run: Run
) -> Reference:
    """What APC holds to: the reference, or, where that one moves, the start of the run."""
    if not config.has_anchor:
        return reference
    if run.checkpoint is None:
        return start_reference(policy)
    return load_reference(policy, run.checkpoint, ANCHOR_FILE)


def schedule_span(config: DPOConfig, iteration: int, played: int, steps: int) -> ScheduleSpan:
    """What an iteration uses up of it: as much as of the environment steps.

    Args:
        played: steps before it.
        steps: its own.
    """
    if config.data is not None:
        return ScheduleSpan(iteration, iteration + 1)
    return ScheduleSpan.of_steps(played, steps, config.rollout.steps_per_iteration)


def updates_in_an_iteration(config: DPOConfig, stored: list[Pair] | None, run: Run) -> int:
    """Optimizer steps, at most; what the schedule of the learning rate counts in."""
    if stored is None:
        return config.updates_per_iteration
    pairs = sum(run.gather([len(stored)]))
    return -(-pairs // config.batch_size)


def act(
    collectors: Collectors, stored: list[Pair] | None, context: DPOContext, iteration: int
) -> Gathered:
    """This iteration's pairs: played, or those that were stored."""
    if stored is not None:
        return Gathered(Collected([], []), stored)
    return gather(collectors, context.config, context.run, iteration)


def draw(pairs: Sequence[Pair], context: DPOContext, iteration: int) -> list[Pair]:
    """At most so many pairs of all processes as the settings allow, drawn uniformly."""
    config, run = context.config, context.run
    if config.data is not None:
        return list(pairs)
    total, first = sum(run.gather([len(pairs)])), run.offset(len(pairs))
    order = np.random.default_rng([config.seed, iteration, 1]).permutation(total)
    chosen = sorted(order[: config.pairs_per_iteration])
    return [pairs[index - first] for index in chosen if first <= index < first + len(pairs)]


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
        chosen = [samples[index] for index in indices]
        layout = lay_out_pairs(chosen, policy.encoder, policy.device)
        with run.autocast():
            scores: Scores = updater.module(layout.tokens, temperature=config.rollout.temperature)
        winners, losers = answers_of(scores, layout)
        ranked = objective(winners, losers, config, reference_point)
        consistency = consistency_of(winners, losers, layout, config)
        share = len(indices) / whole
        statistics = [
            ranked.loss,
            consistency,
            (ranked.margins_P > 0).float().mean(),
            ranked.margins_P.mean(),
            winners.log_ratios.mean(),
            losers.log_ratios.mean(),
            winners.action_P.exp().mean(),
            losers.action_P.exp().mean(),
        ]
        totals.add_(share * torch.stack(statistics).detach().cpu())
        return share * (ranked.loss + config.consistency_coefficient * consistency)

    return [
        partial(part, indices) for indices in plan_pairs(samples, config.compute.micro_batch_tokens)
    ]


def consistency_of(
    winners: Answers, losers: Answers, layout: PairTokens, config: DPOConfig
) -> Tensor:
    """APC, of the chosen responses (Eq. 7) or of both."""
    action_P, anchors_P = winners.action_P, layout.anchors_B[layout.winners_P]
    if config.consistency_sides == "both":
        action_P = torch.cat([action_P, losers.action_P])
        anchors_P = torch.cat([anchors_P, layout.anchors_B[layout.losers_P]])
    return action_consistency_loss(action_P=action_P, reference_action_P=anchors_P)


def summarize(
    gathered: Gathered, known: Known, statistics: Statistics, context: DPOContext
) -> list[Metric]:
    """An iteration as numbers for the log."""
    run, is_played = context.run, context.config.data is None
    margins = run.gather([pair.margin for pair in gathered.pairs])
    return [
        *(summarize_collection(gathered.collected, run) if is_played else []),
        *(summarize_actions(gathered.collected, run) if is_played else []),
        Metric("pairs", len(margins)),
        Metric("pairs_used", sum(run.gather([len(known.samples)]))),
        Metric("score_margin", float(np.mean(margins)) if margins else float("nan")),
        *(Metric(name, value) for name, value in statistics._asdict().items()),
        *([Metric("max_ratio_error", known.deviation)] if is_played else []),
    ]
