"""Asks an endpoint until it answers: retries, waits, a limit of requests per minute, counts; and
the threads that ask."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeVar

import numpy as np

from forethought.chat.http import KEY_VARIABLE, Endpoint, NoReplyError, Reply, post
from forethought.chat.messages import ProtocolError
from forethought.chat.protocol import (
    ChatAnswer,
    ChatRequest,
    read_answer,
    read_error,
    write_request,
)
from forethought.configs.acting import ApiConfig
from forethought.errors import PolicyError
from forethought.generation.contract import GenerationRequest

ResultT = TypeVar("ResultT")

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
LONGEST_PAUSE_S = 600.0
"""A server that asks for a longer one has no room for us today."""

_BUSY = (408, 409, 425, 429)
"""Statuses below 500 after which the same request may succeed later."""
_ADVICE = {
    401: f"check {KEY_VARIABLE}",
    403: f"check {KEY_VARIABLE}",
    404: "check the model's name and the address",
}


@dataclass(frozen=True)
class Usage:
    """What has been asked for so far."""

    answers: int = 0
    retries: int = 0
    """Requests that were sent again."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    uncounted: int = 0
    """Answers whose tokens the server did not count."""

    def cost(self, config: ApiConfig) -> float:
        """US dollars, of the tokens that were counted."""
        prompts = self.prompt_tokens * config.prompt_price
        completions = self.completion_tokens * config.completion_price
        return (prompts + completions) / 1e6


class Clock(Protocol):
    """What time it is, and how to wait; tests have one of their own."""

    def now(self) -> float:
        """Seconds, from any beginning."""
        ...

    def wait(self, seconds: float) -> None:
        """Returns that much later.

        Raises:
            StoppedError: there is nothing to wait for any more.
        """
        ...


class StoppedError(Exception):
    """Whoever asked has gone."""


class RealClock:
    """The machine's, until it is stopped: that wakes all who wait."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def now(self) -> float:
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise StoppedError

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def stop(self) -> None:
        """Nobody waits any more."""
        self._stopped.set()


class RequestThreads(Generic[ResultT]):
    """Several requests under way at a time, each in a thread; results come in any order."""

    def __init__(
        self, ask: Callable[[GenerationRequest], ResultT], clock: RealClock, *, most: int
    ) -> None:
        """
        Args:
            ask: called by any thread.
            clock: stopped when the threads are to end.
            most: threads at a time.
        """
        self._ask = ask
        self._clock = clock
        self._most = most
        self._threads = 0
        self._pending = 0
        self._asked: SimpleQueue[GenerationRequest | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[GenerationRequest, ResultT | Exception]] = SimpleQueue()

    def submit(self, request: GenerationRequest) -> None:
        """Asks as soon as a thread is free."""
        self._pending += 1
        if self._threads < min(self._most, self._pending):
            self._threads += 1
            # A daemon: a request under way does not hold up the end of the process.
            threading.Thread(target=self._work, daemon=True).start()
        self._asked.put(request)

    def results(self, *, may_wait: bool) -> list[tuple[GenerationRequest, ResultT]]:
        """What has come back since the last call.

        Args:
            may_wait: for the first one, if any is under way.

        Raises:
            Exception: what asking raised; the other requests are dropped.
        """
        found: list[tuple[GenerationRequest, ResultT]] = []
        while self._pending:
            try:
                request, result = self._done.get(block=may_wait and not found)
            except Empty:
                break
            self._pending -= 1
            if isinstance(result, Exception):
                self.close()
                raise result
            found.append((request, result))
        return found

    def close(self) -> None:
        """Ends the threads as soon as the requests under way are over."""
        self._clock.stop()
        for _ in range(self._threads):
            self._asked.put(None)

    def _work(self) -> None:
        while (request := self._asked.get()) is not None and not self._clock.is_stopped:
            try:
                self._done.put((request, self._ask(request)))
            except Exception as error:  # Of any kind: it is raised by who waits for the result.
                self._done.put((request, error))
                return


class Sender:
    """Sends requests, from any number of threads."""

    def __init__(self, endpoint: Endpoint, config: ApiConfig, clock: Clock) -> None:
        self._endpoint = endpoint
        self._config = config
        self._clock = clock
        self._lock = threading.Lock()
        self._next_turn_s = -math.inf
        self._paused_until_s = -math.inf
        self._usage = Usage()

    @property
    def usage(self) -> Usage:
        with self._lock:
            return self._usage

    def ask(self, request: ChatRequest, *, seed: int) -> ChatAnswer:
        """One answer, however often it must be asked for.

        Args:
            seed: of how long the waits are, 0 … 2**128 - 1: requests that fail together are
                not to come back together.

        Raises:
            PolicyError: the server refuses the request, asks for too long a pause, or does
                not answer in all attempts.
        """
        body = write_request(request)
        randomness = np.random.Generator(np.random.Philox(key=seed))
        problem = ""
        for attempt in range(self._config.attempts):
            if attempt:
                self._count(retries=1)
            self._await_turn()
            try:
                reply = post(self._endpoint, body, request.path, timeout_s=self._config.timeout_s)
                if reply.status == 200:
                    answer = read_answer(reply.body)
                    self._count_answer(answer)
                    return answer
                problem, pause_s = self._refusal(reply), reply.retry_after_s
            except (NoReplyError, ProtocolError) as error:
                problem, pause_s = str(error), None
            if pause_s is not None:
                self._pause(pause_s, problem)
            longest_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt)
            if attempt + 1 < self._config.attempts:
                self._clock.wait(longest_s * randomness.uniform(0.5, 1.0))
        raise PolicyError(
            f"{self._endpoint.url}: no answer in {self._config.attempts} attempts; the last "
            f"time: {problem}"
        )

    def _refusal(self, reply: Reply) -> str:
        """Why there is no answer yet.

        Raises:
            PolicyError: there will be none.
        """
        said = " ".join(self._endpoint.quoted(read_error(reply.body))[:300].split())
        problem = f"status {reply.status}{f': {said}' if said else ''}"
        if reply.status >= 500 or reply.status in _BUSY:
            return problem
        advice = _ADVICE.get(reply.status, "the request cannot be answered as it is")
        raise PolicyError(f"{self._endpoint.url}: {problem} — {advice}")

    def _await_turn(self) -> None:
        """Waits until the limit of requests per minute lets one more through, and the server
        wants to be asked again."""
        interval_s = 60.0 / (self._config.requests_per_minute or math.inf)
        with self._lock:
            turn_s = max(self._clock.now(), self._next_turn_s)
            self._next_turn_s = turn_s + interval_s
        while True:
            with self._lock:
                rest_s = max(turn_s, self._paused_until_s) - self._clock.now()
            if rest_s <= 0:
                return
            self._clock.wait(rest_s)

    def _pause(self, seconds: float, problem: str) -> None:
        """Keeps all threads from asking."""
        if not seconds <= LONGEST_PAUSE_S:
            raise PolicyError(
                f"{self._endpoint.url}: {problem}; it asks to wait {seconds:,.0f} s — try later"
            )
        with self._lock:
            self._paused_until_s = max(self._paused_until_s, self._clock.now() + seconds)

    def _count_answer(self, answer: ChatAnswer) -> None:
        prompt, completion = answer.prompt_tokens, answer.completion_tokens
        self._count(
            answers=1,
            prompt_tokens=prompt or 0,
            completion_tokens=completion or 0,
            uncounted=int(prompt is None or completion is None),
        )

    def _count(
        self,
        *,
        answers: int = 0,
        retries: int = 0,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        uncounted: int = 0,
    ) -> None:
        with self._lock:
            so_far = self._usage
            self._usage = Usage(
                so_far.answers + answers,
                so_far.retries + retries,
                so_far.prompt_tokens + prompt_tokens,
                so_far.completion_tokens + completion_tokens,
                so_far.uncounted + uncounted,
            )
