"""What `train q-sft` will do and need, before it does it."""

from functools import partial

from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.algorithms.q_sft.context import find_maps
from forethought.algorithms.q_sft.train import plan_stages
from forethought.training.plan import image_memory, offline_work, open_outline, plan_lines


def plan_q_sft(config: QSFTConfig) -> list[str]:
    """The plan, one line each.

    Raises:
        ForethoughtError: as training would.
    """
    _, encoder, model = open_outline(config)
    work, lengths, steps = offline_work(config, partial(plan_stages, config), encoder)
    maps = find_maps(config).maps
    ends = f"from {maps[0].lowest:g} to {maps[0].highest:g}"
    more = f", those from the last step on {maps[-1].lowest:g} to {maps[-1].highest:g}"
    work.append(f"reward map  returns {ends} become 0 to 1{more if len(maps) > 1 else ''}")
    memory = {"behavior and target": 2 * 4 * model.trained}
    memory |= image_memory(lengths.packed, steps)
    return plan_lines(config, model, lengths, work, memory)
