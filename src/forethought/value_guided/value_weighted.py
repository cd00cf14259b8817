"""The policy that ILQL acts with: what the data do, times exp(β · what it is worth)."""

import json
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor, nn

from forethought.configs.acting import ValueActingConfig
from forethought.errors import PolicyError
from forethought.generation.huggingface import load_policy
from forethought.models.actor_critic import ActorCritic
from forethought.models.loading import BEHAVIOR
from forethought.value_guided.value_heads import (
    HEADS_FILE,
    ValueHeads,
    ValueModel,
    load_value_model,
)
from forethought.value_guided.weighted import WeightedPolicy, tilted

VALUES = "values"
"""Folder of the value model, beside π_φ's, inside a saved model."""
SETTINGS_FILE = "value_weighted.json"


class _Lower(nn.Module):
    """min(Q1, Q2) in the place of a model's projection onto the vocabulary."""

    def __init__(self, heads: ValueHeads) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., hidden size] to [..., V], fp32."""
        first, second, _ = self.heads(hidden)
        return torch.minimum(first, second)


def reads_values(values: ValueModel) -> ActorCritic:
    """The value model as one whose logits are min(Q1, Q2); it cannot be trained any more.

    Any architecture then runs on the decode loop's cache, as it does with its own projection.
    """
    model = values.trunk.model
    model.set_output_embeddings(_Lower(values.value_head))
    return ActorCritic(model, None)


def weigh_by_values(behavior_BV: Tensor, q_BV: Tensor, acting: ValueActingConfig) -> Tensor:
    """Logits of the acting policy.

        log π^(a|s) = log π_φ(a|s) + β min(Q1, Q2)(s, a) + constant

    Snell et al. 2023, Sec. 4: exp(β (Q - V)), in which V(s) is the same for all tokens of a
    state and so part of the constant.

    Args:
        behavior_BV: logits of π_φ; a constant per row does not count.
        q_BV: the lower of both, in units of return, fp32.
        acting: β and the nucleus.

    Returns:
        [B, V], fp32.
    """
    logprobs_BV = torch.log_softmax(behavior_BV, -1)
    return tilted(logprobs_BV, q_BV, beta=acting.beta, top_p=acting.top_p)


def save_acting(folder: Path, acting: ValueActingConfig) -> None:
    """Writes what acting needs beside the weights into a model's folder."""
    (folder / SETTINGS_FILE).write_text(json.dumps(asdict(acting)) + "\n", encoding="utf-8")


def load_settings(folder: Path) -> ValueActingConfig:
    """What `save_acting` wrote.

    Raises:
        PolicyError: the file cannot be read, or is another one.
    """
    path = folder / SETTINGS_FILE
    try:
        return ValueActingConfig(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise PolicyError(f"{path}: got no settings of an ILQL policy ({error})") from error


def is_value_weighted(folder: Path) -> bool:
    """Whether a model's folder holds a policy and values that weigh it."""
    return (folder / SETTINGS_FILE).is_file() and (folder / VALUES / HEADS_FILE).is_file()


def load_value_weighted(folder: Path, *, slots: int) -> WeightedPolicy[ValueActingConfig]:
    """What an ILQL run's checkpoint holds, to act with, on the GPU if there is one.

    Raises:
        PolicyError: it cannot be loaded.
    """
    acting = load_settings(folder)
    behavior = load_policy(str(folder / BEHAVIOR), slots=slots)
    values = reads_values(load_value_model(folder / VALUES, behavior))
    return WeightedPolicy(behavior, values, acting, weigh=weigh_by_values, slots=slots)
