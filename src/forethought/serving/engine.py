"""One thread that owns the policy, and answers whatever others ask, together."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import NamedTuple

import numpy as np
from jinja2 import TemplateError

from forethought.chat.protocol import ChatAnswer, ChatRequest, Choice
from forethought.errors import PolicyError
from forethought.generation.contract import (
    GenerationRequest,
    GenerationResult,
    TokenwisePolicy,
)
from forethought.serving.answers import Piece
from forethought.serving.weights import Weights
from forethought.types import Completion, Prompt

Check = Callable[[Prompt, int], None]
"""Refuses, with a `PolicyError`, a prompt that with so many new tokens is too long."""

DEFAULT_TEMPERATURE = 1.0
"""Temperature of requests that name none: the protocol's."""


Tell = Callable[[Piece], None]
"""Takes a piece of an answer as soon as it is written, in the engine's thread."""


class StoppedError(Exception):
    """The engine answers no more, or not this request."""


class _Job(NamedTuple):
    request: ChatRequest
    adapter: str | None
    """Which adapters are to answer; None: the model as it was loaded."""
    max_new_tokens: int
    answer: "Future[ChatAnswer]"
    tell: Tell | None


class _Change(NamedTuple):
    """Change of the weights."""

    apply: Callable[[], None]
    done: "Future[None]"


@dataclass
class _Asked:
    """A request under way, with the answers to it that are there."""

    job: _Job
    prompt: Prompt
    version: str | None
    completions: dict[int, Completion] = field(default_factory=dict[int, Completion])
    told: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    """Tokens and characters of each answer that were told already."""


class Engine:
    """Requests that come while others are being answered join them at the next token, if a row
    is free. Those for other adapters, and new weights, wait until all who came before them are
    answered: no answer is written by two models."""

    def __init__(
        self, policy: TokenwisePolicy, check: Check, *, seed: int, weights: Weights | None = None
    ) -> None:
        """
        Args:
            policy: used by the engine's own thread alone from here on.
            seed: of answers whose requests name none.
            weights: what can be exchanged of them, if anything; likewise.
        """
        self._policy = policy
        self._weights = weights
        self._adapter: str | None = None
        self._held: _Job | _Change | None = None
        """What waits for the answers under way."""
        self._check = check
        self._seeds = np.random.Generator(np.random.Philox(key=seed))
        self._jobs: SimpleQueue[_Job | _Change | None] = SimpleQueue()
        self._asked: dict[int, tuple[_Asked, int]] = {}
        """By the key of each answer: its request, and which of the answers to it this is."""
        self._count = 0
        self._lock = threading.Lock()
        self._has_ended = False
        self._given_up: set[Future[ChatAnswer]] = set()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="forethought-engine", daemon=True)
        self._thread.start()

    def ask(
        self,
        request: ChatRequest,
        *,
        max_new_tokens: int,
        adapter: str | None = None,
        tell: Tell | None = None,
    ) -> "Future[ChatAnswer]":
        """Queues a request, from any thread.

        Args:
            adapter: which adapters answer; None: the model as it was loaded.
            tell: gets the answer in pieces, before it comes whole.

        Returns:
            The answer to come; or `PolicyError`, for a request that cannot be answered, or
            `StoppedError`. One that is canceled before its turn is never begun.
        """
        answer: Future[ChatAnswer] = Future()
        self._put(_Job(request, adapter, max_new_tokens, answer, tell))
        return answer

    def give_up(self, answer: "Future[ChatAnswer]") -> None:
        """Says, from any thread, that nobody waits for an answer any more: its rows are free
        from the next token on. One that is done stays as it is."""
        if not answer.cancel() and not answer.done():
            with self._lock:
                self._given_up.add(answer)

    def change(self, apply: Callable[[Weights], None]) -> "Future[None]":
        """Queues a change of the weights, from any thread; the engine's own does it.

        Returns:
            Done, or the `PolicyError` that the change ended in, or `StoppedError`.
        """
        weights, done = self._weights, Future[None]()
        if weights is None:
            done.set_exception(PolicyError("the weights of this policy cannot be exchanged"))
        else:
            self._put(_Change(lambda: apply(weights), done))
        return done

    @property
    def adapters(self) -> tuple[str, ...]:
        """Names of the adapters that are loaded."""
        return () if self._weights is None else self._weights.adapters

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
                self._tell_all()
                self._drop_given_up()
        except Exception as error:
            self._failure = error
        finally:
            self._end()

    def _put(self, job: _Job | _Change) -> None:
        with self._lock:
            if not self._has_ended:
                self._jobs.put(job)
                return
        _refuse(job)

    def _admit_all(self) -> bool:
        """Takes what has been asked, and waits for it where nothing is being answered.

        Returns:
            Whether to go on.
        """
        while True:
            job, self._held = self._held, None
            if job is None:
                try:
                    job = self._jobs.get(block=not self._asked)
                except Empty:
                    return True
            if job is None:
                return False
            is_other = isinstance(job, _Change) or job.adapter != self._adapter
            if is_other and self._asked:
                self._held = job
                return True
            if isinstance(job, _Change):
                self._apply(job)
            else:
                self._admit(job)

    def _apply(self, change: _Change) -> None:
        if not change.done.set_running_or_notify_cancel():
            return
        try:
            change.apply()
            change.done.set_result(None)
        except PolicyError as error:
            change.done.set_exception(error)
        except Exception:  # Which weights there are now, nobody knows.
            change.done.set_exception(StoppedError())
            raise

    def _admit(self, job: _Job) -> None:
        if not job.answer.set_running_or_notify_cancel():
            return
        request = job.request
        try:
            self._select(job.adapter)
            if request.prompt_ids is None:
                prompt = self._policy.prompt(request.messages)
            else:
                prompt = Prompt((), request.prompt_ids)
            self._check(prompt, job.max_new_tokens)
        except TemplateError as error:
            job.answer.set_exception(PolicyError(f"the model's chat template: {error}"))
            return
        except Exception as error:  # Of whatever kind: it is this request's alone.
            job.answer.set_exception(error)
            return
        temperature = DEFAULT_TEMPERATURE if request.temperature is None else request.temperature
        seed = int(self._seeds.integers(2**63)) if request.seed is None else request.seed
        asked = _Asked(job, prompt, None if self._weights is None else self._weights.version)
        for index in range(request.n or 1):
            self._count += 1
            self._asked[self._count] = (asked, index)
            self._policy.submit(
                GenerationRequest(
                    self._count,
                    prompt,
                    (seed + index) % (2**64 if seed < 0 else 2**128),
                    job.max_new_tokens,
                    temperature,
                    choices=request.action_choices,
                    top_p=1.0 if request.top_p is None else request.top_p,
                    stop=request.stop,
                )
            )

    def _select(self, adapter: str | None) -> None:
        """
        Raises:
            PolicyError: they were unloaded meanwhile.
        """
        if adapter is not None and adapter not in self.adapters:
            raise PolicyError(f"adapter {adapter!r} is not loaded")
        if self._weights is not None:
            self._weights.select(adapter)
        self._adapter = adapter

    def _tell_all(self) -> None:
        """Hands on what is new of the answers whose clients read along."""
        for key, (asked, index) in self._asked.items():
            if asked.job.tell is not None and (found := self._policy.under_way(key)) is not None:
                self._tell(asked, index, found, is_last=False)

    def _tell(self, asked: _Asked, index: int, completion: Completion, *, is_last: bool) -> None:
        tokens, start = asked.told.get(index, (0, 0))
        count = len(completion.token_ids)
        if asked.job.tell is None or (count == tokens and not is_last):
            return
        asked.told[index] = (count, len(completion.text))
        new = Choice(
            completion.text[start:],
            completion.finish_reason,
            completion.token_ids[tokens:],
            completion.logprobs[tokens:],
            completion.allowed_ids[tokens:],
            tuple(max(0, offset - start) for offset in completion.token_offsets[tokens:]),
        )
        reason = completion.finish_reason if is_last else None
        asked.job.tell(Piece(index, new, start, reason, asked.prompt.token_ids, asked.version))

    def _drop_given_up(self) -> None:
        with self._lock:
            given_up, self._given_up = self._given_up, set()
        if not given_up:
            return
        for key, (asked, _) in list(self._asked.items()):
            if asked.job.answer in given_up:
                self._policy.cancel(key)
                del self._asked[key]
                if not asked.job.answer.done():
                    asked.job.answer.set_exception(StoppedError())

    def _deliver(self, result: GenerationResult) -> None:
        asked, index = self._asked.pop(result.key)
        asked.completions[index] = result.completion
        self._tell(asked, index, result.completion, is_last=True)
        if len(asked.completions) < (asked.job.request.n or 1):
            return
        completions = [asked.completions[index] for index in sorted(asked.completions)]
        asked.job.answer.set_result(
            ChatAnswer(
                tuple(map(_choice, completions)),
                len(asked.prompt.token_ids),
                sum(len(completion.token_ids) for completion in completions),
                asked.prompt.token_ids,
                asked.job.request.model,
                asked.version,
            )
        )

    def _end(self) -> None:
        """Tells all who still wait."""
        with self._lock:
            self._has_ended = True
        for asked, _ in self._asked.values():
            if not asked.job.answer.done():  # One of its other answers was first.
                asked.job.answer.set_exception(StoppedError())
        if self._held is not None:
            _refuse(self._held)
        while not self._jobs.empty():
            job = self._jobs.get()
            if job is not None:
                _refuse(job)


def _refuse(job: _Job | _Change) -> None:
    """Says that the engine has ended."""
    future = job.answer if isinstance(job, _Job) else job.done
    if future.set_running_or_notify_cancel():
        future.set_exception(StoppedError())


def _choice(completion: Completion) -> Choice:
    return Choice(
        completion.text,
        completion.finish_reason,
        completion.token_ids,
        completion.logprobs,
        completion.allowed_ids,
        completion.token_offsets,
    )
