"""What `train dpo` will do, before it does it."""

from itertools import chain, islice
from pathlib import Path

from forethought.algorithms.dpo.config import DPOConfig
from forethought.rollouts.scripted import play, random_answer
from forethought.rollouts.store import read_shards
from forethought.rollouts.world import World
from forethought.types import Step

_SAMPLE_STEPS = 64
"""Steps from which the length of prompts is judged."""


def dpo_work(config: DPOConfig, world: World) -> tuple[list[str], list[Step]]:
    """The work, one line each, and steps whose prompts are like those of the run.

    Raises:
        ForethoughtError: stored trajectories that are not there, or damaged.
    """
    how = f"objective   {config.loss_type}, β {config.beta:g}"
    if config.consistency_coefficient:
        how += f", κ {config.consistency_coefficient:g}"
    if config.data is not None:
        stored = read_shards(Path(config.data))
        sample = list(islice(chain.from_iterable(t.steps for t in stored), _SAMPLE_STEPS))
        return [
            how,
            f"pairs       {config.pairing}, those in {config.data}, {config.epochs} passes over "
            f"all of them, {config.batch_size} per update",
        ], sample
    environment = world.factory()
    try:
        episodes = play(world.id, environment, world.prompter, random_answer(0), range(2**31))
        sample = list(islice(chain.from_iterable(t.steps for t in episodes), _SAMPLE_STEPS))
    finally:
        environment.close()
    rollout, iterations = config.rollout, config.iterations
    return [
        how,
        f"steps       {config.total_steps:,} of the environment, beyond which only the last round "
        f"may go: at most {iterations} rounds of {rollout.steps_per_iteration} or more, in "
        f"{rollout.num_envs} at once",
        f"pairs       {config.pairing}, at most {config.pairs_per_iteration} per iteration",
        f"updates     at most {iterations * config.updates_per_iteration:,}: "
        f"{config.updates_per_iteration} per iteration, of {config.batch_size} pairs each",
    ], sample
