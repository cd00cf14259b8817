"""The policy that is a model behind an OpenAI-compatible API."""

import threading
from collections.abc import Sequence
from queue import Empty, SimpleQueue

import numpy as np

from forethought.chat.http import Endpoint
from forethought.chat.protocol import ChatRequest
from forethought.chat.sender import RealClock, Sender, Usage
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
        self._clock = RealClock()
        self._sender = Sender(endpoint, config, self._clock)
        self._most_workers = config.concurrency
        self._workers = 0
        self._pending = 0
        self._asked: SimpleQueue[GenerationRequest | None] = SimpleQueue()
        self._answered: SimpleQueue[GenerationResult | Exception] = SimpleQueue()

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
        self._pending += 1
        if request.max_new_tokens == 0:  # The value alone is wanted, and there is no critic.
            self._answered.put(_result(request, "", FinishReason.LENGTH))
            return
        if self._workers < min(self._most_workers, self._pending):
            self._workers += 1
            # A daemon: a request under way does not hold up the end of the process.
            threading.Thread(target=self._work, daemon=True).start()
        self._asked.put(request)

    def advance(self) -> list[GenerationResult]:
        """
        Raises:
            PolicyError: a request is refused or given up; the others are dropped.
        """
        results: list[GenerationResult] = []
        while self._pending:
            try:
                found = self._answered.get(block=not results)
            except Empty:
                break
            self._pending -= 1
            if isinstance(found, Exception):
                self.close()
                raise found
            results.append(found)
        return results

    def close(self) -> None:
        """Ends the threads as soon as the requests under way are over."""
        self._clock.stop()
        for _ in range(self._workers):
            self._asked.put(None)

    def _work(self) -> None:
        while (request := self._asked.get()) is not None and not self._clock.is_stopped:
            try:
                self._answered.put(self._answer(request))
            except Exception as error:  # Of any kind: it is raised by who waits for the answer.
                self._answered.put(error)
                return

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
