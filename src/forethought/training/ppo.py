"""λ-PPO: reinforcement learning of thoughts and actions (Zhai et al. 2024, RL4VLM).

One iteration: act, judge, improve. Equation numbers are the paper's. A critic judges, or,
without one, other episodes do (`advantage`): the rest is the same.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from forethought.config import PPOConfig
from forethought.config_parts import require
from forethought.environments.vector import Runner
from forethought.errors import OffPolicyError
from forethought.losses.kl import kl_to_reference
from forethought.losses.masked_mean import masked_mean
from forethought.policies.actor_critic import Scores
from forethought.policies.batching import Rows
from forethought.policies.huggingface import HuggingFacePolicy
from forethought.policies.reference import Reference, load_reference, start_reference
from forethought.rollouts.collector import AnswerSettings, Collected, Collector
from forethought.rollouts.seeding import Split
from forethought.rollouts.world import World
from forethought.training.anchor import penalised, reference_logprobs, with_anchor
from forethought.training.judging import (
    judge,
    rescale_critic,
    summarise_critic,
    without_advantages,
)
from forethought.training.optim import Updater
from forethought.training.ppo_losses import action_consistency, policy_loss, value_loss
from forethought.training.run import Existing, Run, advance, open_run
from forethought.training.samples import Sample, lay_out, plan, to_sample
from forethought.training.start import start
from forethought.training.summary import Stopwatch, summarise_collection
from forethought.types import Measure

RATIO_TOLERANCE = 1e-3
"""In fp32, before the first update of an iteration, every ratio is 1 within this."""


class Learner(NamedTuple):
    """What every part of an iteration works with."""

    policy: HuggingFacePolicy
    updater: Updater
    config: PPOConfig
    run: Run
    reference: Reference | None = None
    """The model as it was at the start, where the policy is to stay near it."""


class Statistics(NamedTuple):
    """Of one iteration's updates, averaged over them."""

    policy_loss: float
    value_loss: float
    entropy: float
    reference_kl: float
    action_consistency: float
    approximate_kl: float
    clip_fraction: float
    value_clip_fraction: float
    gradient_norm: float


def train_ppo(config: PPOConfig, *, existing: Existing = "refuse") -> Path:
    """Trains, and returns the run folder.

    Raises:
        ForethoughtError: whatever a person can mend; `OffPolicyError` if sampled and
            recomputed log-probs differ, which would make every ratio wrong.
    """
    with open_run(config, existing) as run:
        slots = run.share_of(config.rollout.slots, "rollout.slots")
        expected = f"a divisor of the slots of one process ({slots})"
        require(slots % config.group_size == 0, "group_size", config.group_size, expected)
        world, policy = start(config, run, slots=slots, critic=config.has_critic)
        updates = config.iterations * config.updates_per_iteration
        updater = run.make_updater(
            policy,
            config.optimizer,
            total_steps=updates,
            critic_learning_rate=config.critic_learning_rate,
        )
        learner = Learner(policy, updater, config, run, open_reference(policy, config, run))
        bar = run.bar("ppo", config.total_steps)
        with world.runner(slots, config.environment.workers) as runner:
            collector = make_collector(learner, world, runner, on_step=partial(advance, bar))
            for iteration in range(run.steps_done, config.iterations):
                watch = Stopwatch()
                collected = collect(collector, config, run)
                watch.lap("collect_s")
                anchor = ask_reference(collected, learner)
                judged = judge(charge(collected, anchor, config), config, run)
                rescale_critic(judged, policy, run)
                if config.has_critic and iteration < config.critic_warmup:
                    judged = without_advantages(judged)
                samples, deviation = rescore(with_anchor(judged, anchor), learner)
                watch.lap("rescore_s")
                statistics = improve(samples, learner, iteration)
                watch.lap("update_s")
                measures = [
                    *summarise_collection(collected, run),
                    *(summarise_critic(samples, run) if config.has_critic else []),
                    *summarise_updates(statistics, config),
                    Measure("first_ratio_deviation", deviation),
                ]
                run.record(iteration + 1, measures, watch.laps)
                run.keep(collected.trajectories, iteration + 1)
                bar.set_postfix(success=f"{measures[1].value:.2f}", refresh=False)
                is_last = iteration + 1 == config.iterations
                if is_last or (iteration + 1) % config.checkpoint_every == 0:
                    run.save(
                        policy,
                        updater,
                        step=iteration + 1,
                        cursors=collector.cursors(),
                        reference=learner.reference,
                    )
        bar.close()
        return run.folder.path


def open_reference(policy: HuggingFacePolicy, config: PPOConfig, run: Run) -> Reference | None:
    """The start of the run, where something holds the policy to it."""
    if not config.has_reference:
        return None
    return load_reference(policy, run.checkpoint) if run.checkpoint else start_reference(policy)


def make_collector(
    learner: Learner, world: World, runner: Runner, on_step: Callable[[int], object]
) -> Collector:
    """Slots in training episodes, brought back to where a stopped run left them."""
    policy, _, config, run, _ = learner
    rollout = config.rollout
    collector = Collector(
        environment_id=world.id,
        runner=runner,
        policy=policy,
        prompter=world.prompter,
        settings=AnswerSettings(
            rollout.max_new_tokens, rollout.temperature, rollout.on_invalid, rollout.hold_actions
        ),
        split=Split.TRAINING,
        run_seed=config.seed,
        bootstraps=config.has_critic,
        group_size=config.group_size,
        first_slot=runner.slots * run.process,
        total_slots=rollout.slots,
        on_step=partial(on_step, run.processes),
    )
    if run.progress is not None:
        on_step(run.progress.step * rollout.steps_per_iteration)
        collector.restore(run.progress.cursors[run.process])
    return collector


def collect(collector: Collector, config: PPOConfig, run: Run) -> Collected:
    """One iteration's steps.

    A critic says what the rest of an episode is worth: each slot takes equally many steps,
    and goes on next time where it was cut. Without one, only whole episodes can be compared:
    every slot plays one, groups side by side, again and again until all processes together
    have the steps. Nothing is cut or left over, the iteration ends some steps late, and which
    episodes it holds depends on their lengths alone, never on timing.
    """
    rollout = config.rollout
    if config.has_critic:
        return collector.collect_steps(rollout.steps_per_iteration // rollout.slots)
    everything, steps = Collected([], []), 0
    while steps < rollout.steps_per_iteration:
        played = collector.collect_round()
        everything.trajectories.extend(played.trajectories)
        everything.episodes.extend(played.episodes)
        steps += sum(run.gather([len(trajectory.steps) for trajectory in played.trajectories]))
    return everything


def ask_reference(collected: Collected, learner: Learner) -> list[list[float]] | None:
    """The reference's log-probs of every step's answer, in the order of trajectories and steps;
    None where none is kept."""
    policy, updater, config, run, reference = learner
    if reference is None:
        return None
    steps = chain.from_iterable(trajectory.steps for trajectory in collected.trajectories)
    samples = [to_sample(step, advantage=0.0, value_target=0.0) for step in steps]
    return reference_logprobs(samples, policy, updater, reference, config, run)


def charge(collected: Collected, anchor: list[list[float]] | None, config: PPOConfig) -> Collected:
    """With `kl_use: reward`, every step is charged for how far its answer is from the start."""
    if anchor is None or config.kl_use != "reward":
        return collected
    charged = penalised(collected.trajectories, anchor, config.kl_coefficient)
    return collected._replace(trajectories=charged)


def rescore(samples: Sequence[Sample], learner: Learner) -> tuple[list[Sample], float]:
    """Scores the samples with the weights that acted, as training will score them.

    Returns:
        The samples with recomputed log-probs and values, so that the first ratio is 1
        also where sampling rounds differently (bf16); and the largest |ratio - 1|
        between sampled and recomputed.

    Raises:
        OffPolicyError: the two differ in fp32: prompt, image, ids or weights are not
            those of the rollout.
    """
    policy, updater, config, run, _ = learner
    rescored = list(samples)
    largest = 0.0
    policy.module.eval()
    for rows in plan(samples, config.compute.micro_batch_tokens):
        tokens, old = lay_out(samples, rows, policy.encoder, policy.device)
        with torch.no_grad(), run.autocast():
            scores: Scores = updater.module(tokens, temperature=config.rollout.temperature)
        result = policy_loss(scores, tokens, old, config)
        largest = max(largest, float(result.maximum_deviation))
        values_B = old.values_B if scores.values_B is None else scores.values_B
        for position, index in enumerate(chain.from_iterable(rows)):
            logprobs_T = scores.logprobs_BT[position][tokens.mask_BT[position]]
            rescored[index] = samples[index]._replace(
                old_logprobs=logprobs_T.tolist(), old_value=float(values_B[position])
            )
    largest = max(run.gather([largest]))
    if config.compute.precision == "fp32" and largest > RATIO_TOLERANCE:
        raise OffPolicyError(
            f"before the first update a ratio is off 1 by {largest:.2g} — expected at most "
            f"{RATIO_TOLERANCE:g}: the recomputed log-probs are not those that were sampled"
        )
    return rescored, largest


def improve(samples: Sequence[Sample], learner: Learner, iteration: int) -> Statistics:
    """Epochs of optimiser steps over shuffled batches.

    Batches are drawn from the samples of all processes; each process does its own ones.
    """
    policy, updater, config, run, _ = learner
    policy.module.without_dropout()
    sizes = run.gather([len(sample.old_logprobs) for sample in samples])
    first = run.offset(len(samples))
    totals = empty_totals()
    norms: list[float] = []
    for epoch in range(config.epochs):
        order = np.random.default_rng([config.seed, iteration, epoch]).permutation(len(sizes))
        for batch in np.array_split(order, config.updates_per_iteration // config.epochs):
            mine = [samples[i - first] for i in batch if first <= i < first + len(samples)]
            whole = BatchSize(steps=len(batch), tokens=sum(sizes[i] for i in batch))
            norms.append(updater.step(micro_losses(mine, whole, totals, learner)))
    policy.weights_changed()
    means = run.sum(totals) / len(norms)
    return Statistics(*means.tolist(), gradient_norm=float(np.mean(norms)))


def empty_totals() -> Tensor:
    """Sums of `Statistics`, before any: all but the gradient's norm."""
    return torch.zeros(len(Statistics._fields) - 1)


class BatchSize(NamedTuple):
    """Of a global batch, over all processes."""

    steps: int
    tokens: int


def micro_losses(
    samples: Sequence[Sample], whole: BatchSize, totals: Tensor, learner: Learner
) -> list[Callable[[], Tensor]]:
    """One function per micro-batch, giving its part of the global batch's loss.

    Args:
        samples: this process's part of the batch.
        whole: the global batch's size.
        totals: the parts' statistics are added to it, in the order of `Statistics`.
    """
    policy, updater, config, run, _ = learner
    pull = config.kl_coefficient if config.kl_use == "loss" else 0.0
    deviation = policy.module.returns_deviation

    def part(rows: Rows) -> Tensor:
        tokens, old = lay_out(samples, rows, policy.encoder, policy.device)
        with run.autocast():
            scores: Scores = updater.module(
                tokens,
                temperature=config.rollout.temperature,
                entropy_gradient=config.entropy_coefficient > 0,
                critic_gradient=config.critic_gradient == "model",
            )
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
        totals.add_(
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
        return (
            by_loss * policy_part.loss
            + by_step * config.value_coefficient * value_part.loss
            + by_step * config.consistency_coefficient * consistency
            + by_token * (pull * reference_kl - config.entropy_coefficient * entropy)
        )

    return [partial(part, rows) for rows in plan(samples, config.compute.micro_batch_tokens)]


def summarise_updates(statistics: Statistics, config: PPOConfig) -> list[Measure]:
    """The updates' statistics; nothing is said about a critic or a reference that is not there."""
    of_critic = () if config.has_critic else ("value_loss", "value_clip_fraction")
    of_reference = () if config.has_reference else ("reference_kl", "action_consistency")
    return [
        Measure(name, value)
        for name, value in statistics._asdict().items()
        if name not in (*of_critic, *of_reference)
    ]
