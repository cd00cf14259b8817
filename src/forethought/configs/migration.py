"""Settings files of an earlier version, rewritten for this one; comments stay.

Version 2 says what the field says (`bc_epochs`, `num_envs`, `loss_type`); nothing means anything
else than before.
"""

from collections.abc import Iterator
from typing import NamedTuple

import yaml

from forethought.errors import ConfigError

RENAMED = {
    "behaviour_epochs": "bc_epochs",
    "corrections": "dagger_data",
    "demonstrations": "expert_steps",
    "extraction": "policy_extraction",
    "highest_return": "return_max",
    "hold_actions": "constrain_actions",
    "label_noise": "label_smoothing",
    "leftover": "residual_mass",
    "lowest_return": "return_min",
    "nll_coefficient": "rpo_alpha",
    "objective": "loss_type",
    "refresh_every": "ref_model_sync_every",
    "reply_weight": "observation_loss_weight",
    "return_level": "return_bin",
    "return_levels": "return_bins",
    "return_range": "return_normalization",
    "returns_epochs": "mc_epochs",
    "score": "pair_reward",
    "slips": "action_noise",
    "slots": "num_envs",
    "target_margin": "simpo_gamma",
    "target_rate": "polyak_tau",
    "tell_invalid": "invalid_action_feedback",
    "top_fraction": "filter_top_fraction",
    "weight_normalisation": "weight_normalization",
}
"""Fields of version 1, by the last part of their names, and what they are called now."""

_VALUES = {
    ("loss_type", "dpo"): "sigmoid",
    ("loss_type", "rdpo"): "robust",
    ("pair_reward", "gain"): "progress_delta",
    ("pair_reward", "level"): "progress",
    ("residual_mass", "dummy"): "token",
    ("history", "last_k"): "window",
    ("history", "memory"): "summary",
    ("on_invalid", "penalise"): "penalize",
    ("config_version", "1"): "2",
}
"""Values of version 1, with the present name of their field, and what they are now."""


class Change(NamedTuple):
    """One word of a file that another takes the place of."""

    line: int
    """From 1."""
    old: str
    new: str
    start: int
    end: int
    """Half-open range of characters."""


def migrate(text: str) -> tuple[str, list[Change]]:
    """A settings file, or a study of such, of version 1 as version 2 writes it.

    Returns:
        The new text, and what was changed, in the order of the file. No changes: the file is of
        this version already.

    Raises:
        ConfigError: the text is not YAML.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ConfigError(f"not YAML: {' '.join(str(error).split())}") from error
    changes = sorted(set(_changes(root)), key=lambda change: change.start)
    for change in reversed(changes):
        text = text[: change.start] + change.new + text[change.end :]
    return text, changes


def renamed(name: str) -> str | None:
    """What a field of version 1 is called now; None where it was none, or has kept its name."""
    path, _, last = name.rpartition(".")
    new = RENAMED.get(last)
    return None if new is None else f"{path}.{new}" if path else new


def _changes(root: yaml.Node | None) -> Iterator[Change]:
    seen: set[int] = set()
    left = [root]
    while left:
        node = left.pop()
        if not isinstance(node, yaml.CollectionNode) or id(node) in seen:
            continue
        seen.add(id(node))  # An anchor's node is in several places.
        if not isinstance(node, yaml.MappingNode):
            left += node.value
            continue
        for key, value in node.value:
            left.append(value)
            if not isinstance(key, yaml.ScalarNode):
                continue
            name = renamed(key.value) or key.value
            if name != key.value:
                yield _change(key, name)
            if isinstance(value, yaml.ScalarNode):
                new = _VALUES.get((name.rpartition(".")[2], value.value))
                if new is not None:
                    yield _change(value, new)


def _change(node: yaml.ScalarNode, new: str) -> Change:
    start, end = node.start_mark, node.end_mark
    return Change(start.line + 1, node.value, new, start.index, end.index)
