"""What `train dpo` will do and need, before it does it."""

from pathlib import Path

from forethought.algorithms.dpo.config import DPOConfig
from forethought.rollouts.store import read_shards
from forethought.training.plan import (
    first_steps,
    image_memory,
    lengths_of,
    open_outline,
    plan_lines,
    random_steps,
    rollout_memory,
)


def plan_dpo(config: DPOConfig) -> list[str]:
    """The plan, one line each.

    Raises:
        ForethoughtError: as training would.
    """
    world, encoder, model = open_outline(config)
    data = config.data
    steps = random_steps(world) if data is None else first_steps(read_shards(Path(data)))
    rollout = config.rollout
    lengths = lengths_of(steps, encoder)._replace(answer=float(rollout.max_new_tokens))
    memory = rollout_memory(config, model, lengths)
    if not config.lora.components:
        memory["reference"] = 4 * model.trained
    memory |= image_memory(lengths.pictures, rollout.steps_per_iteration)
    work = _played_work(config) if data is None else _stored_work(config)
    return plan_lines(config, model, lengths, [_loss_line(config), *work], memory)


def _loss_line(config: DPOConfig) -> str:
    how = f"objective   {config.loss_type}, β {config.beta:g}"
    if config.consistency_coefficient:
        how += f", κ {config.consistency_coefficient:g}"
    return how


def _stored_work(config: DPOConfig) -> list[str]:
    return [
        f"pairs       {config.pairing}, those in {config.data}, {config.epochs} passes over "
        f"all of them, {config.batch_size} per update",
    ]


def _played_work(config: DPOConfig) -> list[str]:
    rollout, iterations = config.rollout, config.iterations
    return [
        f"steps       {config.total_steps:,} of the environment, beyond which only the last round "
        f"may go: at most {iterations} rounds of {rollout.steps_per_iteration} or more, in "
        f"{rollout.num_envs} at once",
        f"pairs       {config.pairing}, at most {config.pairs_per_iteration} per iteration",
        f"updates     at most {iterations * config.updates_per_iteration:,}: "
        f"{config.updates_per_iteration} per iteration, of {config.batch_size} pairs each",
    ]
