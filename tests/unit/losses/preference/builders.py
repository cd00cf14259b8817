"""Responses with round numbers: probabilities as fractions, so that a reader can redo the sums."""

from math import log
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.losses.preference import Responses


class Given(NamedTuple):
    """Probabilities of one answer: thoughts and action under policy and reference."""

    thoughts: float
    action: float
    reference_thoughts: float
    reference_action: float
    thought_tokens: int = 3
    action_tokens: int = 2


def answers(*given: Given) -> Responses:
    """One per pair; the policy's side requires gradient."""

    def of(numbers: list[float]) -> Tensor:
        return torch.tensor([log(number) for number in numbers])

    return Responses(
        thoughts_P=of([g.thoughts for g in given]).requires_grad_(),
        action_P=of([g.action for g in given]).requires_grad_(),
        reference_thoughts_P=of([g.reference_thoughts for g in given]),
        reference_action_P=of([g.reference_action for g in given]),
        thought_tokens_P=torch.tensor([g.thought_tokens for g in given]),
        action_tokens_P=torch.tensor([g.action_tokens for g in given]),
    )


class Slopes(NamedTuple):
    """Of a loss with respect to the first pair's log-probs."""

    chosen_thoughts: float
    chosen_action: float
    rejected_thoughts: float
    rejected_action: float


def slopes(loss: Tensor, chosen: Responses, rejected: Responses) -> Slopes:
    """By autograd; 0 where nothing is passed back."""
    inputs = [chosen.thoughts_P, chosen.action_P, rejected.thoughts_P, rejected.action_P]
    gradients = torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)
    return Slopes(*(float(gradient[0]) for gradient in gradients))
