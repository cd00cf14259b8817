"""Supervised fine-tuning: learn to answer as the expert does."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter

import torch
from torch import Tensor

from forethought.config import SFTConfig
from forethought.errors import ConfigError
from forethought.losses.cross_entropy import token_mean_cross_entropy
from forethought.policies.batching import Example, Rows, build_batch, plan_rows
from forethought.policies.huggingface import HuggingFacePolicy
from forethought.rollouts.world import World
from forethought.training.examples import to_example
from forethought.training.optim import Updater
from forethought.training.run import Existing, Run, open_run
from forethought.training.shuffling import shuffled_batch
from forethought.training.start import demonstrated_steps, start
from forethought.training.stored_steps import stored_steps
from forethought.types import Measure


def train_sft(config: SFTConfig, *, existing: Existing = "refuse") -> Path:
    """Trains, and returns the run folder.

    Raises:
        ForethoughtError: whatever a person can mend: settings, model, data, disk.
    """
    with open_run(config, existing) as run:
        world, policy = start(config, run, slots=1, critic=False)
        examples = load_examples(config, world, policy, run)
        total = updates_in_all(config, len(examples))
        updater = run.make_updater(policy, config.optimizer, total_steps=total)
        bar = run.bar("sft", total)
        bar.update(updater.steps)
        while updater.steps < total:
            started = perf_counter()
            chosen = shuffled_batch(
                seeds=[config.seed],
                examples=len(examples),
                batch_size=config.batch_size,
                number=updater.steps,
            )
            batch = [examples[index] for index in chosen]
            loss, norm = update(batch, policy, updater, run, config.compute.micro_batch_tokens)
            seconds, tokens = perf_counter() - started, sum(example.length for example in batch)
            run.record(
                updater.steps,
                [Measure("loss", loss), Measure("gradient_norm", norm)],
                [Measure("update_s", seconds), Measure("tokens_per_s", tokens / seconds)],
            )
            bar.update()
            bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
            if updater.steps % config.checkpoint_every == 0 or updater.steps == total:
                run.save(policy, updater, step=updater.steps)
        bar.close()
        return run.folder.path


def update(
    batch: Sequence[Example],
    policy: HuggingFacePolicy,
    updater: Updater,
    run: Run,
    micro_batch_tokens: int,
) -> tuple[float, float]:
    """One optimiser step on a global batch; this process does its share of the rows.

    Returns:
        Loss of the global batch (nats per token) and norm of its gradient.
    """
    policy.module.train()
    answer_tokens = sum(len(example.completion_ids) for example in batch)
    mine = batch[run.process :: run.processes]
    parts: list[Tensor] = []

    def part(rows: Rows) -> Tensor:
        examples = [[mine[index] for index in row] for row in rows]
        tokens = build_batch(examples, policy.encoder).to(policy.device)
        with run.accelerator.autocast():
            scores = updater.module(tokens)
        result = token_mean_cross_entropy(logprobs_BT=scores.logprobs_BT, mask_BT=tokens.mask_BT)
        share = result.loss * result.token_count / answer_tokens
        parts.append(share.detach())
        return share

    losses: list[Callable[[], Tensor]] = [
        partial(part, rows) for rows in plan_rows(mine, micro_batch_tokens)
    ]
    norm = updater.step(losses)
    policy.weights_changed()
    return float(run.sum(sum(parts, torch.zeros(())))), norm


def load_examples(
    config: SFTConfig, world: World, policy: HuggingFacePolicy, run: Run
) -> list[Example]:
    """Prompts and answers: from stored trajectories, or from the world's expert.

    Raises:
        ConfigError: the stored trajectories hold no valid answer.
    """
    if config.data is None:
        with run.bar("demonstrations", config.demonstrations) as bar:
            steps = islice(demonstrated_steps(world, config), config.demonstrations)
            demonstrated: list[Example] = []
            for step in steps:
                demonstrated.append(to_example(step, policy))
                bar.update()
        return demonstrated
    path = Path(config.data)
    steps = stored_steps(config, path)
    examples = [to_example(step, policy) for step in steps if step.action.is_valid]
    if not examples:
        raise ConfigError(f"data: {path} holds no step with a valid answer")
    return examples


def updates_in_all(config: SFTConfig, examples: int) -> int:
    """Optimiser steps of the whole run; at least one."""
    return max(1, round(config.epochs * examples / config.batch_size))
