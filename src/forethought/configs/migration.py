"""Files of an earlier version, rewritten for this one; comments stay.

Settings, studies of such, and the `results.json` of a study. Version 2 uses the names of the
literature and of the libraries around us (`bc_epochs`, `num_envs`, `loss_type`); no meaning
changed.
"""

from collections.abc import Iterator, Mapping
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

RENAMED_IN_STUDIES = {
    "also_judged": "extra_evaluations",
    "cell": "run",
    "cells": "runs",
    "row": "variant",
    "rows": "variants",
    "world": "environment",
}
"""Fields of version 1 of a study, and of its results."""

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
    ("schema_version", "1"): "2",
    ("study_version", "1"): "2",
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
    """A settings file, a study of such, or a study's results of version 1 as version 2 writes it.

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
    names = {**RENAMED, **RENAMED_IN_STUDIES} if _is_of_a_study(root) else RENAMED
    changes = sorted(set(_changes(root, names)), key=lambda change: change.start)
    for change in reversed(changes):
        text = text[: change.start] + change.new + text[change.end :]
    return text, changes


def renamed(name: str) -> str | None:
    """What a field of version 1 is called now; None where it was none, or has kept its name."""
    return _renamed(name, {**RENAMED, **RENAMED_IN_STUDIES})


def _renamed(name: str, names: Mapping[str, str]) -> str | None:
    path, _, last = name.rpartition(".")
    new = names.get(last)
    return None if new is None else f"{path}.{new}" if path else new


def _is_of_a_study(root: yaml.Node | None) -> bool:
    """Whether the file is a study of version 1, or its results."""
    keys = (
        {key.value for key, _ in root.value if isinstance(key, yaml.ScalarNode)}
        if isinstance(root, yaml.MappingNode)
        else set[str]()
    )
    return bool(keys & {"study_version", "rows"}) or {"schema_version", "study"} <= keys


def _changes(root: yaml.Node | None, names: Mapping[str, str]) -> Iterator[Change]:
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
            name = _renamed(key.value, names) or key.value
            if name != key.value:
                yield _change(key, name)
            if isinstance(value, yaml.ScalarNode):
                new = _VALUES.get((name.rpartition(".")[2], value.value))
                if new is not None:
                    yield _change(value, new)


def _change(node: yaml.ScalarNode, new: str) -> Change:
    start, end = node.start_mark, node.end_mark
    quote = node.style if node.style in ("'", '"') else ""
    return Change(start.line + 1, node.value, f"{quote}{new}{quote}", start.index, end.index)
