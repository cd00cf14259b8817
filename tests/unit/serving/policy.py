"""A policy without a model, whose answers are known."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from forethought.errors import PolicyError
from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.types import Completion, FinishReason, Message, Prompt


@dataclass
class EchoPolicy:
    """Answers with the last message, one token per character."""

    version: int = 0
    requests: list[GenerationRequest] = field(default_factory=list[GenerationRequest])
    pending: list[GenerationRequest] = field(default_factory=list[GenerationRequest])
    sizes: list[int] = field(default_factory=list[int])
    """How many were answered together, each time."""
    let_go: threading.Event = field(default_factory=threading.Event)
    """Nothing is answered before it is set."""
    failure: Exception | None = None

    def __post_init__(self) -> None:
        self.let_go.set()

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        if messages[-1].text == "a bug":
            raise ZeroDivisionError
        return Prompt(tuple(messages), (1,) * len(messages[-1].text))

    def submit(self, request: GenerationRequest) -> None:
        self.requests.append(request)
        self.pending.append(request)

    def advance(self) -> list[GenerationResult]:
        return self.step()

    def step(self) -> list[GenerationResult]:
        if self.pending:
            assert self.let_go.wait(10)
        if self.failure is not None:
            raise self.failure
        self.sizes.append(len(self.pending))
        results = [_echo(request) for request in self.pending]
        self.pending = []
        return results


def _echo(request: GenerationRequest) -> GenerationResult:
    text = request.prompt.messages[-1].text[: request.max_new_tokens]
    n = len(text)
    completion = Completion((1,) * n, (0.0,) * n, tuple(range(n)), text, FinishReason.STOP, 0.0)
    return GenerationResult(request.key, completion, None)


def at_most_ten_tokens(prompt: Prompt, max_new_tokens: int) -> None:
    """Room for ten tokens, prompt and answer together."""
    if len(prompt.token_ids) + max_new_tokens > 10:
        raise PolicyError("prompt and answer have more than 10 tokens")
