"""What `train sft` will do and need, before it does it."""

from pathlib import Path

from forethought.algorithms.sft.config import SFTConfig
from forethought.algorithms.sft.steps import stored_steps
from forethought.errors import ConfigError
from forethought.offline.stored_data import require_own
from forethought.rollouts.store import read_shards
from forethought.training.plan import (
    SAMPLE_STEPS,
    check_language,
    first_steps,
    image_memory,
    lengths_of,
    open_outline,
    plan_lines,
)
from forethought.training.start import demonstrations


def plan_sft(config: SFTConfig) -> list[str]:
    """The plan, one line each.

    Raises:
        ForethoughtError: as training would.
    """
    world, encoder, model = open_outline(config)
    if config.data is None:
        count = config.expert_steps + _dagger_steps(config)
        sample = first_steps(demonstrations(world, config))
    else:
        steps = stored_steps(config, Path(config.data))
        sample = [step for step in steps if step.action.is_valid]
        count = len(sample)
        if not sample:
            raise ConfigError(f"data: {config.data} holds no step with a valid answer")
    lengths = lengths_of(sample[:SAMPLE_STEPS], encoder)
    tokens = config.epochs * count * lengths.tokens
    work = [
        f"updates     {config.updates(count):,} of {config.batch_size} answers each, from "
        f"{count:,} steps",
        f"tokens      at most {tokens:,.0f} trained on (per step {lengths.prompt:.0f} of prompt "
        f"and {lengths.answer:.0f} of answer)",
    ]
    return plan_lines(config, model, lengths, work, image_memory(lengths.packed, count))


def check_sft(config: SFTConfig) -> None:
    """Refuses what can be refused before a run folder is touched.

    Raises:
        ForethoughtError: as training would.
    """
    world = check_language(config)
    if config.dagger_data is not None:
        require_own("dagger_data", config.dagger_data, world)


def _dagger_steps(config: SFTConfig) -> int:
    """Steps that may be corrected: fewer where states are met again."""
    if config.dagger_data is None:
        return 0
    return sum(len(trajectory.steps) for trajectory in read_shards(Path(config.dagger_data)))
