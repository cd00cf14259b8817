"""What a training from stored episodes alone will do, before it does it."""

from collections.abc import Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from forethought.algorithms.archer import train as archer
from forethought.algorithms.archer.config import ArcherConfig
from forethought.algorithms.ilql import train as ilql
from forethought.algorithms.q_sft import train as q_sft
from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.algorithms.q_sft.context import find_maps
from forethought.configs.contract import OfflineConfig
from forethought.errors import ConfigError
from forethought.offline.dataset import stored, stored_earned
from forethought.training.phases import Stage
from forethought.types import Step

_SAMPLE_STEPS = 64


def offline_work(config: OfflineConfig) -> tuple[list[str], list[Step], int]:
    """Lines of the plan, steps from which lengths can be judged, and how many there are.

    Raises:
        ForethoughtError: data that are not there or hold nothing to learn from.
    """
    path = Path(config.data)
    lengths = [len(earned.rewards) for earned in stored_earned(path)]
    if not lengths:
        raise ConfigError(f"data: {path} holds no episode with a step")
    stages = ", then ".join(
        f"{stage.updates:,} of {stage.phase}" for stage in _stages(config, len(lengths))
    )
    work = [
        f"episodes    {len(lengths):,}, of {sum(lengths) / len(lengths):.1f} steps on average",
        f"updates     {stages}; of {config.batch_size} episodes each",
    ]
    if isinstance(config, QSFTConfig):
        maps = find_maps(config).maps
        ends = f"from {maps[0].lowest:g} to {maps[0].highest:g}"
        more = f", those from the last step on {maps[-1].lowest:g} to {maps[-1].highest:g}"
        work.append(f"reward map  returns {ends} become 0 to 1{more if len(maps) > 1 else ''}")
    sample = list(islice(chain.from_iterable(t.steps for t in stored(path)), _SAMPLE_STEPS))
    return work, sample, sum(lengths)


def _stages(config: Any, episodes: int) -> Sequence[Stage[Any]]:
    if isinstance(config, QSFTConfig):
        return q_sft.plan_stages(config, episodes)
    if isinstance(config, ArcherConfig):
        return archer.plan_stages(config, episodes)
    return ilql.plan_stages(config, episodes)
