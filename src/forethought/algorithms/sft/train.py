"""Supervised fine-tuning: learn to respond as the expert does."""

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from forethought.algorithms.sft.config import SFTConfig
from forethought.algorithms.sft.steps import corrected_steps, demonstrated_steps, stored_steps
from forethought.configs.parts import require
from forethought.errors import ConfigError
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.batching import Example
from forethought.offline.dataset import require_own, shuffled_batch
from forethought.offline.rows import Row, to_example, to_rows
from forethought.rollouts.task import Task
from forethought.training.behavior_cloning import clone_behavior
from forethought.training.run import Existing, Run, open_run
from forethought.training.start import start
from forethought.types import Metric


def train_sft(config: SFTConfig, *, existing: Existing = "refuse") -> Path:
    """Trains, and returns the run folder.

    Raises:
        ForethoughtError: whatever a person can fix: settings, model, data, disk.
    """
    with open_run(config, existing) as run:
        task, policy = start(config, run, slots=1, critic=False)
        rows = load_rows(config, task, policy, run)
        responses = sum(row.responses for row in rows)
        total = config.updates(responses)
        batch_size = rows_in_a_batch(config, len(rows), responses)
        updater = run.make_updater(policy, config.optimizer, total_steps=total)
        bar = run.bar("sft", total)
        bar.update(updater.steps)
        while updater.steps < total and not run.is_stopped:
            started = perf_counter()
            chosen = shuffled_batch(
                seeds=[config.seed],
                examples=len(rows),
                batch_size=batch_size,
                number=updater.steps,
            )
            batch = [rows[index] for index in chosen]
            metrics = clone_behavior(
                batch,
                policy,
                updater,
                run,
                config.compute.micro_batch_tokens,
                observation_loss_weight=config.observation_loss_weight,
            )
            seconds, tokens = perf_counter() - started, sum(row.length for row in batch)
            speed = [Metric("update_s", seconds), Metric("tokens_per_s", tokens / seconds)]
            run.record(updater.steps, metrics, speed)
            bar.update()
            bar.set_postfix(loss=f"{metrics[0].value:.4f}", refresh=False)
            is_last = run.is_stopped or updater.steps == total
            if is_last or updater.steps % config.checkpoint_every == 0:
                run.save(policy, updater, step=updater.steps)
        bar.close()
        return run.folder.path


def load_rows(config: SFTConfig, task: Task, policy: HuggingFacePolicy, run: Run) -> list[Row]:
    """What is learned from, as rows of tokens; conversations are whole.

    Raises:
        ConfigError: nothing is there to learn from, or no observation where those are to count.
    """
    rows = to_rows(read_responses(config, task, policy, run), policy.encoder.limits.positions)
    if not rows:
        raise ConfigError(f"data: {config.data} holds no step with a valid response")
    require(
        config.observation_loss_weight == 0 or any(row.replies for row in rows),
        "observation_loss_weight",
        config.observation_loss_weight,
        "0 where no prompt goes on from the one before: no observation is part of these rows",
    )
    return rows


def read_responses(
    config: SFTConfig, task: Task, policy: HuggingFacePolicy, run: Run
) -> Iterator[tuple[Example, bool]]:
    """Prompts and responses, and whether to learn from them: from stored trajectories, or from the
    environment's expert, in its own episodes and in those that it corrects.

    Raises:
        ConfigError: the stored trajectories are of another environment.
    """
    if config.data is not None:
        with run.bar("reading", None) as bar:
            for step in stored_steps(config, Path(config.data)):
                yield to_example(step, policy), step.action.is_valid
                bar.update()
        return
    if config.dagger_data is not None:
        require_own("dagger_data", config.dagger_data, task)
    learned = 0
    with run.bar("expert_steps", config.expert_steps) as bar:
        for step, is_learned in demonstrated_steps(task, config):
            yield to_example(step, policy), is_learned
            learned += is_learned
            bar.update(is_learned)
            if learned == config.expert_steps:
                break
    if config.dagger_data is not None:
        with run.bar("dagger_data", None) as bar:
            for step in corrected_steps(task, config, Path(config.dagger_data)):
                yield to_example(step, policy), True
                bar.update()


def rows_in_a_batch(config: SFTConfig, rows: int, responses: int) -> int:
    """So many that they hold a batch's responses on average; at least one."""
    return max(1, round(config.batch_size * rows / responses))
