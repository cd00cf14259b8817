"""A behavior policy, weighted by a second model that says what each token is worth."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor

from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.generation.decoding import DecodeLoop
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.losses.support import support_mask
from forethought.models.actor_critic import ActorCritic
from forethought.models.limits import Limits
from forethought.types import Message, Prompt

ActingT = TypeVar("ActingT")
Weigh = Callable[[Tensor, Tensor, ActingT], Tensor]
"""From the behavior's logits and the second model's, both [B, V], and how to act, to the
logits that are drawn from."""

FAR_BEHIND = 1e4
"""Nats: a probability of 0 beside any other token, and fp32 still tells a hundredth apart."""


def tilted(logprobs_BV: Tensor, worth_BV: Tensor, *, beta: float, top_p: float) -> Tensor:
    """Logits of a policy that prefers what is worth more.

        log π^(a|s) = log π_φ(a|s) + β w(a|s) + constant

    Args:
        logprobs_BV: of π_φ, nats, fp32.
        worth_BV: w, fp32; what is the same for all tokens of a row does not count.
        beta: 0 is π_φ.
        top_p: nucleus that is kept; what it leaves out comes far behind, in the same order, so
            that an answer which is held to such tokens alone still takes the likelier ones.

    Returns:
        [B, V], fp32.
    """
    logits_BV = logprobs_BV + beta * worth_BV
    if top_p == 1:
        return logits_BV
    kept_BV = support_mask(
        logprobs_NV=torch.log_softmax(logits_BV, -1), top_p=top_p, min_probability=0.0
    )
    return torch.where(kept_BV, logits_BV, logits_BV - FAR_BEHIND)


class WeightedPolicy(Generic[ActingT]):
    """π^ ∝ π_φ exp(β w); satisfies `Policy`. Both models read along in one decode loop.

    What w is, and how β and a nucleus enter, is the caller's: `reweighted.py` (Q-SFT) and
    `value_weighted.py` (ILQL).
    """

    def __init__(
        self,
        behavior: HuggingFacePolicy,
        worth: ActorCritic,
        acting: ActingT,
        *,
        weigh: Weigh[ActingT],
        slots: int,
    ) -> None:
        """
        Args:
            behavior: π_φ, whose prompts and tokens are the policy's.
            worth: what w is read from; of the same architecture.
            acting: settings, which `weigh` gets.
            slots: how many completions are generated at a time.
        """
        self.behavior = behavior
        self.worth = worth
        self._acting = acting
        self._weigh = weigh
        self._slots = slots
        self._loop: DecodeLoop | None = None

    @property
    def version(self) -> int:
        return self.behavior.version

    @property
    def preferred_image_size(self) -> int | None:
        return self.behavior.preferred_image_size

    @property
    def acting(self) -> ActingT:
        """How it acts now."""
        return self._acting

    def act_as(self, acting: ActingT) -> None:
        """Acts otherwise from now on, with the same weights.

        Raises:
            RuntimeError: requests are still being answered.
        """
        if self._loop is not None and self._loop.pending:
            raise RuntimeError(f"{self._loop.pending} requests are unanswered")
        self._acting, self._loop = acting, None

    @property
    def limits(self) -> Limits:
        """How long a sequence it can read."""
        return self.behavior.limits

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        return self.behavior.prompt(messages)

    def require_room(self, prompt: Prompt, max_new_tokens: int) -> None:
        """As `HuggingFacePolicy.require_room`."""
        self.behavior.require_room(prompt, max_new_tokens)

    def submit(self, request: GenerationRequest) -> None:
        if self._loop is None:
            self.behavior.module.eval()
            self.worth.eval()
            self._loop = DecodeLoop(
                self.behavior.module,
                self.behavior.encoder,
                slots=self._slots,
                others=[self.worth],
                mix=self._mix,
            )
        self._loop.submit(request)

    def advance(self) -> list[GenerationResult]:
        return [] if self._loop is None else self._loop.advance()

    def step(self) -> list[GenerationResult]:
        """As `TokenwisePolicy.step`."""
        return [] if self._loop is None else self._loop.step()

    def _mix(self, logits: Sequence[Tensor]) -> Tensor:
        behavior_BV, worth_BV = logits
        return self._weigh(behavior_BV, worth_BV, self._acting)
