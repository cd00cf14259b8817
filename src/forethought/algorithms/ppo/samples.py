"""Environment steps as PPO learns from them, and how they lie in tensors."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.models.batching import (
    Example,
    Rows,
    TokenBatch,
    build_batch,
    mark_in_window,
    place_in_window,
    plan_rows,
)
from forethought.models.encoding import Encoder
from forethought.types import Step


class Sample(NamedTuple):
    """One environment step as PPO learns from it."""

    example: Example
    is_thought: list[bool]
    """Per completion token: before the `"action"` key?"""
    old_logprobs: list[float]
    old_value: float
    """The critic's; 0 where there is none, as its target."""
    advantage: float
    value_target: float
    """GAE's estimate of the discounted return."""
    reference_logprobs: list[float]
    """Under the model that the run started from; as sampled where none is kept."""


def to_sample(step: Step, advantage: float, value_target: float) -> Sample:
    """Ids and spans as they were sampled and parsed; nothing is tokenized again."""
    completion, split = step.completion, step.action.thought_span.stop
    return Sample(
        example=Example(step.prompt, completion.token_ids, completion.allowed_ids),
        is_thought=[index < split for index in range(len(completion.token_ids))],
        old_logprobs=list(completion.logprobs),
        old_value=0.0 if step.value is None else step.value,
        advantage=advantage,
        value_target=value_target,
        reference_logprobs=list(completion.logprobs),
    )


class Old(NamedTuple):
    """What was known before the update, in the layout of a `TokenBatch`."""

    logprobs_BT: Tensor
    thought_mask_BT: Tensor
    values_B: Tensor
    advantages_B: Tensor
    value_targets_B: Tensor
    reference_logprobs_BT: Tensor


def plan(samples: Sequence[Sample], micro_batch_tokens: int) -> list[Rows]:
    """Micro-batches of rows; steps taken in equal states share a row."""
    return plan_rows([sample.example for sample in samples], micro_batch_tokens)


def lay_out(
    samples: Sequence[Sample], rows: Rows, encoder: Encoder, device: torch.device
) -> tuple[TokenBatch, Old]:
    """The tensors of one micro-batch, on the device."""
    examples = [[samples[index].example for index in row] for row in rows]
    tokens = build_batch(examples, encoder)
    chosen = [samples[index] for row in rows for index in row]
    old = Old(
        place_in_window(tokens, [sample.old_logprobs for sample in chosen]),
        mark_in_window(tokens, [sample.is_thought for sample in chosen]),
        torch.tensor([sample.old_value for sample in chosen]),
        torch.tensor([sample.advantage for sample in chosen]),
        torch.tensor([sample.value_target for sample in chosen]),
        place_in_window(tokens, [sample.reference_logprobs for sample in chosen]),
    )
    return tokens.to(device), Old(*(tensor.to(device) for tensor in old))
