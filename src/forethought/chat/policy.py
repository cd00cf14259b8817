"""The policy that is a model behind an OpenAI-compatible API."""

from collections.abc import Sequence

import numpy as np

from forethought.chat.http import Endpoint
from forethought.chat.protocol import ChatRequest
from forethought.chat.sender import RealClock, RequestThreads, Sender, Usage
from forethought.configs.acting import ApiConfig
from forethought.errors import PolicyError
from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.types import Completion, FinishReason, Message, Prompt

PREFIX = "api:"
"""`api:NAME` is the model that an endpoint calls NAME."""


class ApiPolicy:
    """Asks for several answers at a time; satisfies `Policy`. It writes text and no tokens.

    Equal seeds give equal answers only as far as the server keeps that.
    """

    def __init__(self, model: str, endpoint: Endpoint, config: ApiConfig) -> None:
        """
        Args:
            model: as the endpoint calls it.
        """
        self._model = model
        clock = RealClock()
        self._sender = Sender(endpoint, config, clock)
        self._threads = RequestThreads(self._answer, clock, most=config.concurrency)
        self._known: list[GenerationResult] = []
        """Of requests that need not be sent."""

    @property
    def version(self) -> int:
        return 0

    @property
    def usage(self) -> Usage:
        """What has been asked for so far."""
        return self._sender.usage

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        """The messages alone: how they become tokens is the server's affair."""
        return Prompt(tuple(messages), ())

    def submit(self, request: GenerationRequest) -> None:
        """
        Raises:
            PolicyError: the answer is to be held to actions.
        """
        if request.choices is not None:
            raise PolicyError(
                f"{PREFIX}{self._model} cannot be held to actions, for its tokens are drawn "
                "elsewhere — leave constrain_actions out"
            )
        if request.max_new_tokens == 0:  # The value alone is wanted, and there is no critic.
            self._known.append(_result(request, "", FinishReason.LENGTH))
            return
        self._threads.submit(request)

    def advance(self) -> list[GenerationResult]:
        """
        Raises:
            PolicyError: a request is refused or given up; the others are dropped.
        """
        results, self._known = self._known, []
        return results + [one for _, one in self._threads.results(may_wait=not results)]

    def close(self) -> None:
        """Ends the threads as soon as the requests under way are over."""
        self._threads.close()

    def _answer(self, request: GenerationRequest) -> GenerationResult:
        is_sampled = request.temperature > 0
        asked = ChatRequest(
            model=self._model,
            messages=request.prompt.messages,
            max_tokens=request.max_new_tokens,
            temperature=request.temperature,
            seed=_short_seed(request.seed) if is_sampled else None,
        )
        answer = self._sender.ask(asked, seed=request.seed)
        return _result(request, answer.text, answer.finish_reason)


def _short_seed(seed: int) -> int:
    """31 bits of all 128, as any server takes them."""
    return int(np.random.Generator(np.random.Philox(key=seed)).integers(2**31))


def _result(request: GenerationRequest, text: str, reason: FinishReason) -> GenerationResult:
    completion = Completion((), (), (), text, reason, request.temperature)
    return GenerationResult(request.key, completion, None)
