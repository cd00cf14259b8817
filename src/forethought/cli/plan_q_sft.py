"""What `train q-sft` will do, before it does it."""

from itertools import chain, islice
from pathlib import Path

from forethought.config_q_sft import QSFTConfig
from forethought.errors import ConfigError
from forethought.training.offline import find_reward_map, stored
from forethought.training.q_sft import plan_stages
from forethought.types import Step

_SAMPLE_STEPS = 64


def q_sft_work(config: QSFTConfig) -> tuple[list[str], list[Step]]:
    """Lines of the plan, and steps from which lengths can be judged.

    Raises:
        ForethoughtError: data that are not there or hold nothing to learn from.
    """
    path = Path(config.data)
    lengths = [len(trajectory.steps) for trajectory in stored(path)]
    if not lengths:
        raise ConfigError(f"data: {path} holds no episode with a step")
    reward_map = find_reward_map(config, stored(path))
    phases = ", then ".join(
        f"{stage.updates:,} of {stage.phase}" for stage in plan_stages(config, len(lengths))
    )
    sample = list(islice(chain.from_iterable(t.steps for t in stored(path)), _SAMPLE_STEPS))
    return [
        f"episodes    {len(lengths):,}, of {sum(lengths) / len(lengths):.1f} steps on average",
        f"updates     {phases}; of {config.batch_size} episodes each",
        f"reward map  returns from {reward_map.lowest:g} to {reward_map.highest:g} become 0 to 1",
    ], sample
