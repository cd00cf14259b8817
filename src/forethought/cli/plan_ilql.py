"""What `train ilql` will do, before it does it."""

from itertools import chain, islice
from pathlib import Path

from forethought.config_ilql import ILQLConfig
from forethought.errors import ConfigError
from forethought.training.ilql import plan_stages
from forethought.training.offline import stored
from forethought.types import Step

_SAMPLE_STEPS = 64


def ilql_work(config: ILQLConfig) -> tuple[list[str], list[Step]]:
    """Lines of the plan, and steps from which lengths can be judged.

    Raises:
        ForethoughtError: data that are not there or hold nothing to learn from.
    """
    path = Path(config.data)
    lengths = [len(trajectory.steps) for trajectory in stored(path)]
    if not lengths:
        raise ConfigError(f"data: {path} holds no episode with a step")
    phases = ", then ".join(
        f"{stage.updates:,} of {stage.phase}" for stage in plan_stages(config, len(lengths))
    )
    sample = list(islice(chain.from_iterable(t.steps for t in stored(path)), _SAMPLE_STEPS))
    return [
        f"episodes    {len(lengths):,}, of {sum(lengths) / len(lengths):.1f} steps on average",
        f"updates     {phases}; of {config.batch_size} episodes each",
    ], sample
