"""What every objective of preferences is computed from: both answers of each pair."""

from typing import NamedTuple

from torch import Tensor

from forethought.losses.checks import (
    require_axes,
    require_constant,
    require_float32,
    require_one_shape,
)


class Answers(NamedTuple):
    """One answer y = (T, a) of each of P pairs: thoughts T, then action a. Log-probs in nats,
    fp32, [P], summed over tokens; 0 where there are none."""

    thoughts_P: Tensor  # log π_θ(T | x)
    action_P: Tensor  # log π_θ(a | x, T)
    reference_thoughts_P: Tensor  # log π_ref(T | x), no gradient
    reference_action_P: Tensor  # log π_ref(a | x, T), no gradient
    thought_tokens_P: Tensor  # int64
    action_tokens_P: Tensor  # int64

    @property
    def logprobs(self) -> Tensor:
        """log π_θ(y | x), [P]."""
        return self.thoughts_P + self.action_P

    @property
    def log_ratios(self) -> Tensor:
        """r(y) = log π_θ(y | x) - log π_ref(y | x), nats, [P]."""
        return self.logprobs - self.reference_thoughts_P - self.reference_action_P

    @property
    def lengths(self) -> Tensor:
        """Tokens of the whole answer, [P]; at least 1, to divide by."""
        return (self.thought_tokens_P + self.action_tokens_P).clamp(min=1)


class PreferenceLoss(NamedTuple):
    """An objective's value, and by how much each winner is preferred."""

    loss: Tensor  # scalar, mean over pairs, to minimize
    margins_P: Tensor  # above 0 where the winner is preferred, in the objective's unit, no gradient


def require_pairs(*, winners: Answers, losers: Answers) -> None:
    """The door of every objective.

    Raises:
        ValueError: not one number per pair, no pair, log-probs that are not float32, or a
            gradient into the reference.
    """
    for side, answers in (("winners", winners), ("losers", losers)):
        named = {f"{side}.{name}": tensor for name, tensor in answers._asdict().items()}
        require_axes("P", **named)
        require_one_shape(first=winners.thoughts_P, **named)
        logprobs = {name: tensor for name, tensor in named.items() if "tokens" not in name}
        require_float32(**logprobs)
        require_constant(**{n: tensor for n, tensor in logprobs.items() if "reference" in n})
    if winners.thoughts_P.numel() == 0:
        raise ValueError("expected at least one pair, got none")


def require_above_zero(**numbers: float) -> None:
    """Refuses a scale that is not one.

    Raises:
        ValueError: 0 or below, or not a number.
    """
    for name, number in numbers.items():
        if not 0 < number < float("inf"):
            raise ValueError(f"{name}: expected more than 0, got {number}")
