"""One thread that owns the policy, and answers whatever others ask, together."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import NamedTuple

import numpy as np
from jinja2 import TemplateError

from forethought.chat.protocol import ChatAnswer, ChatRequest
from forethought.errors import PolicyError
from forethought.generation.contract import (
    GenerationRequest,
    GenerationResult,
    TokenwisePolicy,
)
from forethought.types import Prompt

Check = Callable[[Prompt, int], None]
"""Refuses, with a `PolicyError`, a prompt that with so many new tokens is too long."""

DEFAULT_TEMPERATURE = 1.0
"""Of requests that name none: the protocol's."""


class StoppedError(Exception):
    """The engine answers no more."""


class _Job(NamedTuple):
    request: ChatRequest
    max_new_tokens: int
    answer: "Future[ChatAnswer]"


class _Asked(NamedTuple):
    job: _Job
    prompt_tokens: int


class Engine:
    """Requests that come while others are being answered join them at the next token, if a row
    is free."""

    def __init__(self, policy: TokenwisePolicy, check: Check, *, seed: int) -> None:
        """
        Args:
            policy: used by the engine's own thread alone from here on.
            seed: of answers whose requests name none.
        """
        self._policy = policy
        self._check = check
        self._seeds = np.random.Generator(np.random.Philox(key=seed))
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._asked: dict[int, _Asked] = {}
        self._count = 0
        self._lock = threading.Lock()
        self._has_ended = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="forethought-engine", daemon=True)
        self._thread.start()

    def ask(self, request: ChatRequest, *, max_new_tokens: int) -> "Future[ChatAnswer]":
        """Queues a request, from any thread.

        Returns:
            The answer to come; or `PolicyError`, for a request that cannot be answered, or
            `StoppedError`. One that is canceled before its turn is never begun.
        """
        job = _Job(request, max_new_tokens, Future())
        with self._lock:
            if self._has_ended:
                job.answer.set_exception(StoppedError())
            else:
                self._jobs.put(job)
        return job.answer

    def wait(self) -> None:
        """Returns when the engine was stopped.

        Raises:
            Exception: what ended it otherwise.
        """
        while self._thread.is_alive():
            self._thread.join(0.5)  # In slices, so that signals come through everywhere.
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Ends the thread behind the answer that it is at; the others are not given."""
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            while self._admit_all():
                for result in self._policy.step():
                    self._deliver(result)
        except Exception as error:
            self._failure = error
        finally:
            self._end()

    def _admit_all(self) -> bool:
        """Takes what has been asked, and waits for it where nothing is being answered.

        Returns:
            Whether to go on.
        """
        while True:
            try:
                job = self._jobs.get(block=not self._asked)
            except Empty:
                return True
            if job is None:
                return False
            self._admit(job)

    def _admit(self, job: _Job) -> None:
        if not job.answer.set_running_or_notify_cancel():
            return
        request = job.request
        try:
            prompt = self._policy.prompt(request.messages)
            self._check(prompt, job.max_new_tokens)
        except TemplateError as error:
            job.answer.set_exception(PolicyError(f"the model's chat template: {error}"))
            return
        except Exception as error:  # Of whatever kind: it is this request's alone.
            job.answer.set_exception(error)
            return
        self._count += 1
        seed = int(self._seeds.integers(2**63)) if request.seed is None else request.seed % 2**64
        temperature = DEFAULT_TEMPERATURE if request.temperature is None else request.temperature
        self._asked[self._count] = _Asked(job, len(prompt.token_ids))
        self._policy.submit(
            GenerationRequest(self._count, prompt, seed, job.max_new_tokens, temperature)
        )

    def _deliver(self, result: GenerationResult) -> None:
        job, prompt_tokens = self._asked.pop(result.key)
        completion = result.completion
        job.answer.set_result(
            ChatAnswer(
                completion.text,
                completion.finish_reason,
                prompt_tokens,
                len(completion.token_ids),
            )
        )

    def _end(self) -> None:
        """Tells all who still wait."""
        with self._lock:
            self._has_ended = True
        for asked in self._asked.values():
            asked.job.answer.set_exception(StoppedError())
        while not self._jobs.empty():
            job = self._jobs.get()
            if job is not None and job.answer.set_running_or_notify_cancel():
                job.answer.set_exception(StoppedError())
