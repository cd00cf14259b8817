"""CNN+RL: PPO of a small network that sees and names an action (RL4VLM's baseline).

One iteration: act, compute advantages, update, as in λ-PPO, but an action is one choice among the
environment's actions, and its log-prob is that of the choice: there are no words.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cnn_baseline.config import CNN, CNNConfig
from cnn_baseline.image_task import ImageTask, open_image_task
from cnn_baseline.network import (
    SMALLEST,
    ActionScores,
    CNNPolicy,
    Inputs,
    Shape,
    load_cnn,
    make_cnn,
)
from cnn_baseline.vision_tower import take_tower
from forethought.configs.parts import SamplingConfig, require
from forethought.environments.vector import Runner
from forethought.errors import ConfigError, OffPolicyError
from forethought.losses.ppo import clipped_policy_loss, clipped_value_loss, explained_variance
from forethought.rollouts.collector import Collected, Collector
from forethought.rollouts.seeding import Split
from forethought.rollouts.task import Task
from forethought.runs.checkpoints import MODEL_DIR, model_source
from forethought.targets.episode_advantages import normalize_advantages
from forethought.targets.returns import trajectory_advantages
from forethought.training.optim import Updater
from forethought.training.run import Existing, Run, open_run
from forethought.training.summary import Stopwatch, summarize_collection
from forethought.types import Metric

IMAGE_SIZE = 64
"""Pixels on a side where the settings name none."""
RATIO_TOLERANCE = 1e-3
"""Before the first update of an iteration, every ratio is 1 within this."""


class Batch(NamedTuple):
    """Environment steps as they are learned from, one per row."""

    inputs: Inputs
    actions_B: Tensor
    old_logprobs_B: Tensor
    old_values_B: Tensor
    advantages_B: Tensor
    value_targets_B: Tensor

    def rows(self, indices: Tensor) -> "Batch":
        """Some of the steps."""
        return Batch(self.inputs.rows(indices), *(tensor[indices] for tensor in self[1:]))


class Statistics(NamedTuple):
    """Of one iteration's updates, averaged over them."""

    policy_loss: float
    value_loss: float
    entropy: float
    approximate_kl: float
    clip_fraction: float
    value_clip_fraction: float


class CNNContext(NamedTuple):
    """What every part of an iteration works with."""

    policy: CNNPolicy
    updater: Updater
    config: CNNConfig


def train_cnn(config: CNNConfig, *, existing: Existing = "refuse") -> Path:
    """Trains, and returns the run folder.

    Raises:
        ForethoughtError: whatever a person can fix.
    """
    with open_run(config, existing) as run:
        if run.processes > 1:
            raise ConfigError(f"{run.processes} processes were launched — train cnn runs in one")
        task, policy = start_cnn(config, run)
        updates = config.iterations * config.updates_per_iteration
        updater = run.make_updater(policy, config.optimizer, total_steps=updates)
        context = CNNContext(policy, updater, config)
        bar = run.bar("cnn", config.total_steps)
        with task.runner(config.rollout.num_envs, config.environment.workers) as runner:
            collector = make_collector(context, task, runner, run, bar.update)
            for iteration in range(run.steps_done, config.iterations):
                watch = Stopwatch()
                collected = collector.collect_steps(
                    config.rollout.steps_per_iteration // config.rollout.num_envs
                )
                watch.lap("collect_s")
                batch = compute_advantages(collected, context)
                deviation = check_first_ratio(batch, context)
                statistics, norm = improve(batch, context, iteration)
                watch.lap("update_s")
                metrics = [
                    *summarize_collection(collected, run),
                    Metric("explained_variance", explained(batch)),
                    *(Metric(name, value) for name, value in statistics._asdict().items()),
                    Metric("gradient_norm", norm),
                    Metric("max_ratio_error", deviation),
                ]
                run.record(iteration + 1, metrics, watch.laps)
                run.keep(collected.trajectories, iteration + 1)
                bar.set_postfix(success=f"{metrics[1].value:.2f}", refresh=False)
                is_last = run.is_stopped or iteration + 1 == config.iterations
                if is_last or (iteration + 1) % config.checkpoint_every == 0:
                    run.save(policy, updater, step=iteration + 1, cursors=collector.cursors())
                if run.is_stopped:
                    break
        bar.close()
        return run.folder.path


def start_cnn(config: CNNConfig, run: Run) -> tuple[Task, CNNPolicy]:
    """Opens the task and makes the network: from the run's checkpoint where it goes on.

    Raises:
        ForethoughtError: a task without image or fixed actions; a model that is not
            there or has no vision tower.
    """
    device = run.accelerator.device
    if run.checkpoint is not None:
        policy = load_cnn(run.checkpoint / MODEL_DIR, version=run.steps_done)
        size = policy.shape.height
        task = open_image_task(config.environment, default_image_size=size).task
    else:
        task, policy = make_policy(config)
    policy.to(device)
    return task, policy


def make_policy(config: CNNConfig) -> tuple[Task, CNNPolicy]:
    """A network that has learned nothing, made for its task."""
    if config.model == CNN:
        seen = open_image_task(config.environment, default_image_size=IMAGE_SIZE)
        side = min(seen.height, seen.width)
        require(side >= SMALLEST, "environment.image_size", side, f"{SMALLEST} or more")
        return seen.task, make_cnn(shape_of(seen, config, None), None, seed=config.seed)
    frozen, size = take_tower(model_source(config.model), config.pooling)
    seen = open_image_task(config.environment, default_image_size=size)
    blank = np.zeros((seen.height, seen.width, 3), dtype=np.uint8)
    shape = shape_of(seen, config, frozen([blank]).shape[1])
    return seen.task, make_cnn(shape, frozen, seed=config.seed)


def shape_of(seen: ImageTask, config: CNNConfig, features: int | None) -> Shape:
    """The network that this task and these settings ask for."""
    return Shape(
        actions=seen.actions,
        height=seen.height,
        width=seen.width,
        text_length=config.text_length if seen.has_text else 0,
        hidden_size=config.hidden_size,
        features=features,
        pooling=config.pooling,
    )


def make_collector(
    context: CNNContext, task: Task, runner: Runner, run: Run, on_step: Callable[[int], object]
) -> Collector:
    """Slots in training episodes, brought back to where a stopped run left them."""
    rollout = context.config.rollout
    collector = Collector(
        environment_id=task.id,
        runner=runner,
        policy=context.policy,
        prompter=task.prompter,
        sampling=SamplingConfig(rollout.sampling.temperature, max_new_tokens=1),
        split=Split.TRAINING,
        run_seed=context.config.seed,
        bootstraps=True,
        on_step=partial(on_step, 1),
    )
    if run.progress is not None:
        on_step(run.progress.step * rollout.steps_per_iteration)
        collector.restore(run.progress.cursors[0])
    return collector


def compute_advantages(collected: Collected, context: CNNContext) -> Batch:
    """Advantages by GAE (truncation bootstraps, termination does not), then normalized."""
    policy, _, config = context
    played = [trajectory for trajectory in collected.trajectories if trajectory.failure is None]
    estimated = [
        trajectory_advantages(one, gamma=config.gamma, gae_lambda=config.gae_lambda)
        for one in played
    ]
    steps = [step for trajectory in played for step in trajectory.steps]
    advantages = normalize_advantages(np.concatenate([one.advantages_T for one in estimated]))

    def row(numbers: object, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.as_tensor(numbers, dtype=dtype, device=policy.device)

    return Batch(
        inputs=policy.encode([step.prompt for step in steps]),
        actions_B=row([step.completion.token_ids[0] for step in steps], torch.int64),
        old_logprobs_B=row([step.completion.logprobs[0] for step in steps]),
        old_values_B=row([step.value for step in steps]),
        advantages_B=row(advantages),
        value_targets_B=row(np.concatenate([one.returns_T for one in estimated])),
    )


def score(batch: Batch, context: CNNContext) -> tuple[Tensor, Tensor, Tensor]:
    """Under the present weights: log-probs of the actions taken, entropies, values; [B] each."""
    scores: ActionScores = context.updater.module(batch.inputs)
    logprobs_BA = torch.log_softmax(
        scores.logits_BA / context.config.rollout.sampling.temperature, dim=1
    )
    logprobs_B = logprobs_BA.gather(1, batch.actions_B[:, None]).squeeze(1)
    return logprobs_B, -(logprobs_BA.exp() * logprobs_BA).sum(1), scores.values_B


@torch.no_grad()
def check_first_ratio(batch: Batch, context: CNNContext) -> float:
    """The largest |ratio - 1| before the first update.

    Raises:
        OffPolicyError: too large: these steps were not taken with these weights.
    """
    logprobs_B, _, _ = score(batch, context)
    deviation = float((logprobs_B - batch.old_logprobs_B).expm1().abs().max())
    if deviation > RATIO_TOLERANCE:
        raise OffPolicyError(
            f"before the first update a ratio is off 1 by {deviation:.2g} — expected at most "
            f"{RATIO_TOLERANCE:g}: the recomputed log-probs are not those that were sampled"
        )
    return deviation


def improve(batch: Batch, context: CNNContext, iteration: int) -> tuple[Statistics, float]:
    """Epochs of optimizer steps over shuffled batches.

    Returns:
        The updates' statistics, and the mean norm of their gradients.
    """
    policy, updater, config = context
    size = len(batch.actions_B)
    totals = torch.zeros(len(Statistics._fields), device=policy.device)
    norms: list[float] = []
    for epoch in range(config.epochs):
        order = np.random.default_rng([config.seed, iteration, epoch]).permutation(size)
        for rows in np.array_split(order, config.updates_per_iteration // config.epochs):
            part = batch.rows(torch.from_numpy(rows).to(policy.device))
            norms.append(updater.step([partial(objective, part, totals, context)]))
    policy.weights_changed()
    means = (totals / len(norms)).tolist()
    return Statistics(*means), float(np.mean(norms))


def objective(batch: Batch, totals: Tensor, context: CNNContext) -> Tensor:
    """The loss of one update; its statistics are added to the totals."""
    config = context.config
    logprobs_B, entropies_B, values_B = score(batch, context)
    policy_part = clipped_policy_loss(
        logprobs=logprobs_B,
        old_logprobs=batch.old_logprobs_B,
        advantages=batch.advantages_B,
        mask=None,
        clip=config.clip,
    )
    value_part = clipped_value_loss(
        values_B=values_B,
        old_values_B=batch.old_values_B,
        returns_B=batch.value_targets_B,
        clip=config.value_clip,
        mask_B=None,
    )
    entropy = entropies_B.mean()
    parts = (policy_part.loss, value_part.loss, entropy, policy_part.approximate_kl)
    fractions = (policy_part.clip_fraction, value_part.clip_fraction)
    totals.add_(torch.stack([*parts, *fractions]).detach())
    return (
        policy_part.loss
        + config.value_coefficient * value_part.loss
        - config.entropy_coefficient * entropy
    )


def explained(batch: Batch) -> float:
    """How much of the returns the critic foresaw."""
    return float(
        explained_variance(
            values_B=batch.old_values_B, returns_B=batch.value_targets_B, mask_B=None
        )
    )


def plan_cnn(config: CNNConfig) -> list[str]:
    """The plan, one line each.

    Raises:
        ForethoughtError: a task or model that is not there or does not suit: as training would.
    """
    _, policy = make_policy(config)
    rollout, iterations = config.rollout, config.iterations
    parameters = sum(parameter.numel() for parameter in policy.module.parameters())
    return [
        "plan",
        f"steps       {iterations * rollout.steps_per_iteration:,} of the environment: "
        f"{iterations} iterations of {rollout.steps_per_iteration}, in {rollout.num_envs} at once",
        f"updates     {iterations * config.updates_per_iteration:,}: "
        f"{config.updates_per_iteration} per iteration, of {config.batch_size} steps each",
        f"model       {parameters:,} parameters, all of them trained",
    ]


def check_cnn(config: CNNConfig) -> None:
    """Refuses what can be refused before a run folder is touched.

    Raises:
        ForethoughtError: as `plan_cnn`.
    """
    make_policy(config)
