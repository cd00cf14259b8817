"""What a request gets: the ASGI application, which the HTTP server calls once per request."""

import asyncio
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from forethought.chat.protocol import CHAT, COMPLETIONS
from forethought.errors import visible
from forethought.serving.admission import Admission, Asked, Refusal
from forethought.serving.answers import (
    DONE,
    Envelope,
    write_answer,
    write_done,
    write_error,
    write_failure,
    write_models,
    write_piece,
    write_usage,
)

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
T = TypeVar("T")

_CHAT, _COMPLETIONS, _MODELS = f"/v1{CHAT}", f"/v1{COMPLETIONS}", "/v1/models"
_LOAD, _UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
_UPDATE, _HEALTH = "/update_weights_from_disk", "/health"
_METHODS = {_MODELS: "GET", _HEALTH: "GET"} | dict.fromkeys(
    (_CHAT, _COMPLETIONS, _LOAD, _UNLOAD, _UPDATE), "POST"
)
_RETRY_AFTER_S = "1"
_LINGER_S = 2.0
"""How long the rest of a refused request is read and dropped. Closed at once, its connection
would be reset, and the client would never see why."""


class ClientGoneError(Exception):
    """The client closed the connection: there is nobody to answer."""


class _Response(NamedTuple):
    status: int
    body: bytes
    said: str
    """For the log."""
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
    is_sent: bool = False
    """Whether it was sent already, piece by piece."""


class Application:
    """A few pages (`_METHODS`), and errors for all others."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        started_s = time.monotonic()
        body = _Body(receive)
        try:
            response = await self._respond(scope, body, send)
        except ClientGoneError as error:
            _forget(error)
            _log(scope, started_s, "the client has gone")
            return
        except Refusal as refusal:
            response = _refused(refusal)
            _forget(refusal)
        except Exception:
            print(visible(traceback.format_exc()), file=sys.stderr, end="", flush=True)
            error = write_error("a bug of the server's", kind="server_error")
            response = _Response(500, error, "500")
        _log(scope, started_s, response.said)
        if response.is_sent:
            return
        await _send(response, send, is_last=body.is_whole)
        if not body.is_whole:
            await body.drop()
            await send({"type": "http.response.body"})

    async def _respond(self, scope: Mapping[str, Any], body: "_Body", send: Send) -> _Response:
        """
        Raises:
            Refusal: it gets an error.
            ClientGoneError: it needs no answer any more.
        """
        deadline_s = asyncio.get_running_loop().time() + self._admission.limits.timeout_s
        headers = _Headers(scope["headers"])
        self._admission.require_host(headers.only("host"))
        path, method = scope["path"], scope["method"]
        if path not in _METHODS:
            raise Refusal(404, f"no such page — {', '.join(_METHODS)}")
        if method != _METHODS[path]:
            raise Refusal(405, f"{visible(method)} is not allowed — {_METHODS[path]} {path}")
        if method == "POST" and headers.content_type != "application/json":
            raise Refusal(415, "Content-Type is not application/json")
        length = _length(headers, is_needed=method == "POST")
        most = self._admission.limits.request_bytes
        if length > most:
            raise Refusal(413, f"the request has {length} bytes — expected {most} at most")
        content = await body.read(deadline_s)
        admission = self._admission
        if path == _HEALTH:
            return _Response(200, b"", "200")
        if path == _MODELS:
            listed = write_models(
                admission.model, admission.adapters, created_s=admission.started_s
            )
            return _Response(200, listed, "200")
        changes = {
            _LOAD: admission.load_adapter,
            _UNLOAD: admission.unload_adapter,
            _UPDATE: admission.update_weights,
        }
        if path in changes:
            said = await changes[path](content, deadline_s)
            return _Response(200, write_done(said), f"200 {said}")
        gone = asyncio.ensure_future(body.wait_until_gone())
        try:
            asked = await _unless(gone, admission.ask(content, is_chat=path == _CHAT))
            try:
                return await self._answer(asked, gone, deadline_s, send)
            finally:
                admission.give_up(asked)  # Where it is not done, nobody waits for it any more.
        finally:
            gone.cancel()

    async def _answer(
        self, asked: Asked, gone: "asyncio.Future[None]", deadline_s: float, send: Send
    ) -> _Response:
        """
        Args:
            gone: done when the client is.
        """
        request = asked.request
        name = f"{'chatcmpl' if request.prompt_ids is None else 'cmpl'}-{uuid4().hex}"
        envelope = Envelope(name, request.model, int(time.time()))
        if request.stream:
            return await self._stream(asked, envelope, gone, deadline_s, send)
        answer = await _unless(gone, self._admission.whole(asked, deadline_s))
        said = f"200 {answer.prompt_tokens} + {answer.completion_tokens} tokens"
        return _Response(200, write_answer(request, answer, envelope), said)

    async def _stream(
        self,
        asked: Asked,
        envelope: Envelope,
        gone: "asyncio.Future[None]",
        deadline_s: float,
        send: Send,
    ) -> _Response:
        """Sends pieces as they are written. What goes wrong before the first one has a status of
        its own; what goes wrong later is the last event."""
        request = asked.request

        async def tell(event: bytes, *, is_last: bool = False) -> None:
            await send({"type": "http.response.body", "body": event, "more_body": not is_last})

        piece = await _unless(gone, self._admission.piece(asked, deadline_s))
        if piece is None:
            await self._admission.whole(asked, deadline_s)  # Says why.
        kind = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
        await send({"type": "http.response.start", "status": 200, "headers": kind})
        try:
            while piece is not None:
                await tell(write_piece(request, piece, envelope))
                piece = await _unless(gone, self._admission.piece(asked, deadline_s))
            answer = await self._admission.whole(asked, deadline_s)
        except Refusal as refusal:
            await tell(write_failure(refusal.body), is_last=True)
            return _Response(200, b"", f"200 broken off: {refusal}", is_sent=True)
        if request.include_usage:
            await tell(write_usage(request, answer, envelope))
        await tell(DONE, is_last=True)
        said = f"200 {answer.prompt_tokens} + {answer.completion_tokens} tokens"
        return _Response(200, b"", said, is_sent=True)


async def _unless(gone: "asyncio.Future[None]", work: Coroutine[Any, Any, T]) -> T:
    """What comes of some work, unless the client goes first.

    Raises:
        ClientGoneError: it went; the work is canceled.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({gone, task}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGoneError
        return task.result()
    finally:
        task.cancel()


class _Headers:
    """A request's headers, of which those that count may come once only."""

    def __init__(self, headers: list[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in headers:
            self._values.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def only(self, name: str) -> str | None:
        """
        Raises:
            Refusal: it is there twice.
        """
        values = self._values.get(name, [])
        if len(values) > 1:
            raise Refusal(400, f"{len(values)} {name} headers, expected one")
        return values[0] if values else None

    @property
    def content_type(self) -> str:
        return (self.only("content-type") or "").partition(";")[0].strip().lower()


class _Body:
    """What follows a request's headers."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.is_whole = False
        """Whether all of it has been read: what is left would hide the next request."""

    async def read(self, deadline_s: float) -> bytes:
        """
        Args:
            deadline_s: in the loop's time.

        Raises:
            Refusal: it is too slow.
            ClientGoneError: it broke off.
        """
        content = bytearray()
        try:
            async with asyncio.timeout_at(deadline_s):
                while not self.is_whole:
                    content += await self._next()
        except TimeoutError:
            raise Refusal(408, "the request did not come whole in time") from None
        return bytes(content)

    async def drop(self) -> None:
        """Reads what still comes, for a while."""
        try:
            async with asyncio.timeout(_LINGER_S):
                while not self.is_whole:
                    await self._next()
        except (TimeoutError, ClientGoneError):
            pass

    async def wait_until_gone(self) -> None:
        """Behind a body that is whole, only the end of the connection can come."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        self.is_whole = not message.get("more_body", False)
        return message.get("body", b"")


def _length(headers: _Headers, *, is_needed: bool) -> int:
    """Bytes of the body.

    Raises:
        Refusal: they are not known.
    """
    length = headers.only("content-length")
    if "transfer-encoding" in headers or (length is None and is_needed):
        raise Refusal(411, "Content-Length is missing")
    # uvicorn's parser lets digits through and nothing else: leading zeros, too, any number.
    return int((length or "").lstrip("0") or "0")


def _forget(error: BaseException | None) -> None:
    """Lets go of what the functions that raised an error had in hand, a whole request for
    instance: it would be kept until the next collection of garbage, which is seldom."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def _refused(refusal: Refusal) -> _Response:
    kind = (("content-type", "application/json"),)
    if refusal.status == 429:
        kind = (*kind, ("retry-after", _RETRY_AFTER_S))
    return _Response(refusal.status, refusal.body, f"{refusal.status} {refusal}", kind)


async def _send(response: _Response, send: Send, *, is_last: bool) -> None:
    """
    Args:
        is_last: nothing of the request is left to be read, so that another may follow.
    """
    headers = [*response.headers, ("content-length", str(len(response.body)))]
    if not is_last:
        headers.append(("connection", "close"))
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": response.status, "headers": encoded})
    await send({"type": "http.response.body", "body": response.body, "more_body": not is_last})


def _log(scope: Mapping[str, Any], started_s: float, said: str) -> None:
    seconds = time.monotonic() - started_s
    line = f"{scope['method']} {scope['path']} {seconds:.2f} s {said}"
    print(visible(" ".join(line.split())), file=sys.stderr, flush=True)
