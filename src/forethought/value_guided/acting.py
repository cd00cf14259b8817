"""What a saved model acts with: its weights alone, or weighted by the values beside them."""

from pathlib import Path

from forethought.configs.acting import ActingConfig, ValueActingConfig
from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.value_guided.reweighted import is_reweighted, load_reweighted
from forethought.value_guided.value_weighted import is_value_weighted, load_value_weighted
from forethought.value_guided.weighted import WeightedPolicy

ActingPolicy = HuggingFacePolicy | WeightedPolicy[ActingConfig] | WeightedPolicy[ValueActingConfig]


def load_acting(source: str, *, slots: int) -> ActingPolicy:
    """A saved model to act with, on the GPU if there is one.

    Args:
        source: a model's folder, or hub id.
        slots: completions generated at a time.

    Raises:
        PolicyError: it cannot be loaded.
    """
    if is_reweighted(Path(source)):
        return load_reweighted(Path(source), slots=slots)
    if is_value_weighted(Path(source)):
        return load_value_weighted(Path(source), slots=slots)
    return load_policy(source, slots=slots)
