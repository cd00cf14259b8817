"""Who is answered: the right host, model and length, as long as there is room and time."""

import asyncio
import ipaddress
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from forethought.chat.messages import ProtocolError
from forethought.chat.protocol import ChatAnswer, ChatRequest
from forethought.errors import PolicyError
from forethought.serving.answers import Piece, write_error
from forethought.serving.dialect import (
    read_adapter,
    read_adapter_name,
    read_request,
    read_weights,
)
from forethought.serving.engine import Engine, StoppedError
from forethought.serving.weights import Weights


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
    weights_from: Path | None = None
    """Folder below which weights may be loaded from; None: they stay what they are."""


T = TypeVar("T")

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


class Asked(NamedTuple):
    """A request that is being answered."""

    request: ChatRequest
    answer: "Future[ChatAnswer]"
    pieces: "asyncio.Queue[Piece | None]"
    """Of the answer, where they are wanted; None behind the last one, or where there is none."""


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

    @property
    def adapters(self) -> tuple[str, ...]:
        """Names of the adapters that are loaded."""
        return self._engine.adapters

    async def load_adapter(self, body: bytes, deadline_s: float) -> str:
        """Loads adapters under a name, and says so.

        Raises:
            Refusal: no request, a place that weights may not come from, no adapters that fit.
        """
        try:
            name, path = read_adapter(body)
        except ProtocolError as error:
            raise Refusal(400, str(error)) from None
        if name == self.model:
            raise Refusal(400, f"lora_name is {name!r}, the model's own name — choose another")
        folder = self._allowed(path)
        await self._change(lambda weights: weights.load_adapter(name, folder), deadline_s)
        return f"adapter {name} is loaded"

    async def unload_adapter(self, body: bytes, deadline_s: float) -> str:
        """Unloads adapters, and says so.

        Raises:
            Refusal: no request, or there are none of this name.
        """
        try:
            name = read_adapter_name(body)
        except ProtocolError as error:
            raise Refusal(400, str(error)) from None
        self._allowed(".")
        if name not in self.adapters:
            raise Refusal(404, f"adapter {name!r} is not loaded")
        await self._change(lambda weights: weights.unload_adapter(name), deadline_s)
        return f"adapter {name} is unloaded"

    async def update_weights(self, body: bytes, deadline_s: float) -> str:
        """Reads all weights from a folder, and says so.

        Raises:
            Refusal: no request, a place that weights may not come from, no weights that fit.
        """
        try:
            path, version = read_weights(body)
        except ProtocolError as error:
            raise Refusal(400, str(error)) from None
        folder = self._allowed(path)
        await self._change(lambda weights: weights.reload(folder, version), deadline_s)
        return f"weights {version or path} are loaded"

    def _allowed(self, path: str) -> Path:
        """
        Raises:
            Refusal: weights may not come from there.
        """
        allowed = self.limits.weights_from
        if allowed is None:
            raise Refusal(403, "weights stay what they are — serve with --weights-from FOLDER")
        folder = Path(path).resolve() if path != "." else allowed.resolve()
        if not folder.is_relative_to(allowed.resolve()):
            raise Refusal(403, f"{path} is not below {allowed}, which --weights-from names")
        return folder

    async def _change(self, apply: Callable[[Weights], None], deadline_s: float) -> None:
        done = asyncio.wrap_future(self._engine.change(apply))
        await self._wait(done, deadline_s)

    async def ask(self, body: bytes, *, is_chat: bool) -> Asked:
        """Reads a request, once there is room for it, and has it answered.

        Args:
            is_chat: whether its prompt are messages, not token ids.

        Raises:
            Refusal: no room, no request, an unknown model, a request that is too long.
        """
        # Before it is read: its images unfold to many times the size of the body.
        if not self._room.acquire(blocking=False):
            message = f"{self.limits.concurrency} requests are being answered — try again"
            raise Refusal(429, message, "rate_limit_error")
        pieces: asyncio.Queue[Piece | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def put(piece: Piece | None) -> None:
            with suppress(RuntimeError):  # The loop has ended, and with it whoever reads.
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        try:
            # In another thread: images take a while, and others want to be heard meanwhile.
            request = await loop.run_in_executor(self._reader, self._read, body, is_chat)
            answer = self._engine.ask(
                request,
                max_new_tokens=self._length_of(request),
                adapter=None if request.model == self.model else request.model,
                tell=put if request.stream else None,
            )
        except BaseException:
            self._room.release()
            raise
        # Room is there when the engine is done with it, not when the client has gone.
        answer.add_done_callback(lambda _: self._room.release())
        answer.add_done_callback(lambda _: put(None))
        return Asked(request, answer, pieces)

    async def whole(self, asked: Asked, deadline_s: float) -> ChatAnswer:
        """Waits for the answer.

        Args:
            deadline_s: in the loop's time.

        Raises:
            Refusal: it cannot be given, or not in time.
        """
        return await self._wait(asyncio.wrap_future(asked.answer), deadline_s)

    async def piece(self, asked: Asked, deadline_s: float) -> Piece | None:
        """Waits for the next piece of an answer; None: it is whole, or ended otherwise.

        Raises:
            Refusal: there is none in time.
        """
        return await self._wait(asyncio.ensure_future(asked.pieces.get()), deadline_s)

    def give_up(self, asked: Asked) -> None:
        """Has an answer written no further, if it is not done."""
        self._engine.give_up(asked.answer)

    def _read(self, body: bytes, is_chat: bool) -> ChatRequest:
        try:
            request = read_request(body, is_chat=is_chat)
        except ProtocolError as error:
            raise Refusal(400, str(error)) from None
        known = (self.model, *self.adapters)
        if request.model not in known:
            names = ", ".join(known)
            raise Refusal(404, f"model {request.model!r} is not served — known: {names}")
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

    async def _wait(self, answer: asyncio.Future[T], deadline_s: float) -> T:
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
