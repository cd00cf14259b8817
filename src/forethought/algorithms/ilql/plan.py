"""What `train ilql` will do and need, before it does it."""

from functools import partial

from forethought.algorithms.ilql.config import ILQLConfig
from forethought.algorithms.ilql.train import plan_stages
from forethought.training.plan import (
    head_memory,
    image_memory,
    offline_work,
    open_outline,
    plan_lines,
)


def plan_ilql(config: ILQLConfig) -> list[str]:
    """The plan, one line each.

    Raises:
        ForethoughtError: as training would.
    """
    _, encoder, model = open_outline(config)
    work, lengths, steps = offline_work(config, partial(plan_stages, config), encoder)
    memory = {"behavior": 4 * model.trained, "heads": head_memory(model)}
    memory |= image_memory(lengths.packed, steps)
    return plan_lines(config, model, lengths, work, memory)
