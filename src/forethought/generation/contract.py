"""Who answers: the seam between the rollout engine and whatever writes text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from forethought.types import Completion, Message, Prompt


@dataclass(frozen=True, eq=False)
class GenerationRequest:
    """One prompt to be answered."""

    key: int
    """The caller's own name for this request; comes back with the answer."""
    prompt: Prompt
    seed: int
    """All randomness of this answer, 0 … 2**128 - 1. Equal weights, prompt and seed give the same
    answer whatever else is being generated beside it (up to rounding)."""
    max_new_tokens: int
    """At least 1; 0 asks for the value of the prompt alone."""
    temperature: float
    """Above 0: sample; 0: take the most likely token."""
    choices: tuple[str, ...] | None = None
    """Actions that the answer's action field is held to; None: any text."""
    top_p: float = 1.0
    """Nucleus (Holtzman et al. 2020): each token is drawn from the fewest tokens that together are
    at least so likely, and `allowed_ids` names them. 1: from all. Greedy requests ignore it."""
    stop: tuple[str, ...] = ()
    """Texts that end the answer: it is cut before the first of them, its ids are not."""


@dataclass(frozen=True, eq=False)
class GenerationResult:
    """An answered request."""

    key: int
    completion: Completion
    """Empty where `max_new_tokens` was 0."""
    value: float | None
    """The critic's estimate for the prompt, if the policy has a critic."""
    version: int | None = None
    """Which weights wrote it, where that may differ from the policy's own: an engine elsewhere
    may have older ones."""


class Policy(Protocol):
    """Anything that turns messages into completions."""

    @property
    def version(self) -> int:
        """How many updates the weights have seen."""
        ...

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        """Renders messages to the token ids that will be fed to the model."""
        ...

    def submit(self, request: GenerationRequest) -> None:
        """Queues a request. It may be answered after requests submitted later."""
        ...

    def advance(self) -> list[GenerationResult]:
        """Works until at least one queued request is answered; returns all that are.

        Returns an empty list only when nothing is queued.
        """
        ...


class TokenwisePolicy(Policy, Protocol):
    """One that can be asked between two tokens, too, so that what comes meanwhile joins in."""

    def step(self) -> list[GenerationResult]:
        """Takes in what is queued, as far as there is room, and draws one token for each
        request under way; returns those that are answered by it."""
        ...

    def under_way(self, key: int) -> Completion | None:
        """What a request has come to so far, as if its limit were there: text and tokens that
        nothing that follows can change. None: it was not begun, or is answered."""
        ...

    def cancel(self, key: int) -> None:
        """Forgets a request between two tokens: its row is free for another."""
        ...
