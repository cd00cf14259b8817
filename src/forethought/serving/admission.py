"""Who is answered: the right host, model and length, as long as there is room and time."""

import asyncio
import ipaddress
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from forethought.chat.messages import ProtocolError
from forethought.chat.protocol import ChatAnswer, ChatRequest, read_request, write_error
from forethought.errors import PolicyError
from forethought.serving.engine import Engine, StoppedError


@dataclass(frozen=True)
class Limits:
    """What a client may ask of the server."""

    request_bytes: int
    concurrency: int
    """Requests that are being answered or wait for it; more are sent away with 429."""
    timeout_s: float
    """From the end of a request's headers to its answer, its body included."""
    prompt_bytes: int
    """UTF-8 bytes of a prompt's text, `MESSAGE_BYTES` more for each message. Longer ones fit
    into no model, and their tokens are never counted: that alone can take half a minute."""
    max_new_tokens: int
    """Longest answer, and the length of those for which no other is asked."""


MESSAGE_BYTES = 16
"""What a message counts for itself: its role takes tokens, too."""
_SHOWN = 500
"""Characters of an error; what a client named may be as long as its request."""


class Refusal(Exception):  # noqa: N818 - it is what is sent, not what went wrong here
    """A request that gets an error for an answer."""

    def __init__(self, status: int, message: str, kind: str = "invalid_request_error") -> None:
        message = message if len(message) <= _SHOWN else f"{message[:_SHOWN]}…"
        super().__init__(message)
        self.status = status
        self.body = write_error(message, kind=kind)


class Answered(NamedTuple):
    request: ChatRequest
    answer: ChatAnswer


class Admission:
    """What connections share: the engine, the names, the limits."""

    def __init__(self, engine: Engine, *, model: str, host: str, limits: Limits) -> None:
        """
        Args:
            model: the name under which clients ask for it.
            host: the address that the server listens at.
        """
        self.model = model
        self.limits = limits
        self.started_s = int(time.time())
        self._engine = engine
        self._is_local = _is_loopback(host)
        self._room = threading.BoundedSemaphore(limits.concurrency)
        # One, so that one request alone is unfolded at a time; and the memory of threads is
        # kept for each of them.
        self._reader = ThreadPoolExecutor(1)

    def close(self) -> None:
        """Reads no more."""
        self._reader.shutdown(wait=False, cancel_futures=True)

    def require_host(self, named: str | None) -> None:
        """Refuses a browser that was led here by a foreign name of this machine.

        Args:
            named: the request's `Host`.
        """
        host = (named or "").rpartition(":")[0] or (named or "")
        if self._is_local and not _is_loopback(host.strip("[]")):
            raise Refusal(403, "Host is not this machine's own — ask 127.0.0.1 or localhost")

    async def answer(self, body: bytes, deadline_s: float) -> Answered:
        """Reads a request, once there is room for it, and waits for the answer.

        Args:
            deadline_s: in the loop's time.

        Raises:
            Refusal: no room, no request, an unknown model, a request that is too long, no time.
        """
        # Before it is read: its pictures unfold to many times the size of the body.
        if not self._room.acquire(blocking=False):
            message = f"{self.limits.concurrency} requests are being answered — try again"
            raise Refusal(429, message, "rate_limit_error")
        try:
            # In another thread: pictures take a while, and others want to be heard meanwhile.
            loop = asyncio.get_running_loop()
            request = await loop.run_in_executor(self._reader, self._read, body)
            answer = self._engine.ask(request, max_new_tokens=self._length_of(request))
        except BaseException:
            self._room.release()
            raise
        # Room is there when the engine is done with it, not when the client has gone.
        answer.add_done_callback(lambda _: self._room.release())
        return Answered(request, await self._wait(asyncio.wrap_future(answer), deadline_s))

    def _read(self, body: bytes) -> ChatRequest:
        try:
            request = read_request(body)
        except ProtocolError as error:
            raise Refusal(400, str(error)) from None
        if request.model != self.model:
            raise Refusal(404, f"model {request.model!r} is not served — known: {self.model}")
        texts = (len(message.text.encode()) for message in request.messages)
        size, most = sum(texts) + MESSAGE_BYTES * len(request.messages), self.limits.prompt_bytes
        if size > most:
            raise Refusal(
                400,
                f"the prompt has {size:,} bytes of text — expected {most:,} at most, since "
                "this model reads no more; shorten it",
            )
        return request

    def _length_of(self, request: ChatRequest) -> int:
        longest = self.limits.max_new_tokens
        wanted = request.max_tokens or longest
        if wanted > longest:
            raise Refusal(400, f"max_tokens is {wanted} — expected {longest} at most")
        return wanted

    async def _wait(self, answer: asyncio.Future[ChatAnswer], deadline_s: float) -> ChatAnswer:
        try:
            async with asyncio.timeout_at(deadline_s):
                return await answer  # One that is canceled before its turn is never begun.
        except TimeoutError:
            message = f"no answer within {self.limits.timeout_s:g} s — try again"
            raise Refusal(504, message, "server_error") from None
        except PolicyError as error:
            raise Refusal(400, str(error)) from None
        except StoppedError:
            raise Refusal(503, "the server is ending", "server_error") from None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
