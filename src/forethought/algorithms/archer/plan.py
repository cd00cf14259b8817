"""What `train archer` will do and need, before it does it."""

from functools import partial

from forethought.algorithms.archer.config import ArcherConfig
from forethought.algorithms.archer.train import plan_stages
from forethought.training.plan import (
    head_memory,
    image_memory,
    offline_work,
    open_outline,
    plan_lines,
)


def plan_archer(config: ArcherConfig) -> list[str]:
    """The plan, one line each.

    Raises:
        ForethoughtError: as training would.
    """
    _, encoder, model = open_outline(config)
    work, lengths, steps = offline_work(config, partial(plan_stages, config), encoder)
    memory = {"critic": 4 * model.trained, "heads": head_memory(model)}
    memory |= image_memory(lengths.packed, steps)
    return plan_lines(config, model, lengths, work, memory)
