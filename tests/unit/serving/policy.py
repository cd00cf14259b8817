"""A policy without a model, whose answers are known."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

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

    def under_way(self, key: int) -> Completion | None:
        return None

    def cancel(self, key: int) -> None:
        self.pending = [request for request in self.pending if request.key != key]


@dataclass
class SpellingPolicy:
    """Answers with the last message, one character at each step; steps wait to be let go."""

    version: int = 0
    steps: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released for every request."""
    canceled: list[int] = field(default_factory=list[int])
    _written: dict[int, tuple[GenerationRequest, int]] = field(
        default_factory=dict[int, tuple[GenerationRequest, int]]
    )
    """By key: the request, and how many characters are there."""

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        return Prompt(tuple(messages), (1,) * len(messages[-1].text))

    def submit(self, request: GenerationRequest) -> None:
        self._written[request.key] = (request, 0)
        self.begun.release()

    def advance(self) -> list[GenerationResult]:
        return self.step()

    def step(self) -> list[GenerationResult]:
        if not self._written:
            return []
        assert self.steps.acquire(timeout=10)
        results: list[GenerationResult] = []
        for key, (request, count) in list(self._written.items()):
            self._written[key] = (request, count + 1)
            whole = _echo(request)
            if count + 1 == len(whole.completion.text):
                del self._written[key]
                results.append(whole)
        return results

    def under_way(self, key: int) -> Completion | None:
        if key not in self._written:
            return None
        request, count = self._written[key]
        return _echo(replace(request, max_new_tokens=count)).completion

    def cancel(self, key: int) -> None:
        del self._written[key]
        self.canceled.append(key)


def _echo(request: GenerationRequest) -> GenerationResult:
    text = request.prompt.messages[-1].text[: request.max_new_tokens]
    n = len(text)
    completion = Completion((1,) * n, (0.0,) * n, tuple(range(n)), text, FinishReason.STOP, 0.0)
    return GenerationResult(request.key, completion, None)


def at_most_ten_tokens(prompt: Prompt, max_new_tokens: int) -> None:
    """Room for ten tokens, prompt and answer together."""
    if len(prompt.token_ids) + max_new_tokens > 10:
        raise PolicyError("prompt and answer have more than 10 tokens")
