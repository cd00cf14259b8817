"""The HTTP server: uvicorn in a thread with `Application`, and a guard of every connection."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from forethought.errors import PolicyError
from forethought.serving.admission import Admission, Limits
from forethought.serving.application import Application
from forethought.serving.engine import Engine

_BACKLOG = 128
_UNTAKEN_BYTES = 1 << 17
_KEEP_ALIVE_S = 5
"""How long a connection may be silent between two requests."""
_GRACE_S = 3
"""For the last answers to go out when the server ends."""


@contextmanager
def serving(engine: Engine, *, model: str, host: str, port: int, limits: Limits) -> Generator[str]:
    """Serves until the block ends, and then stops the engine.

    Args:
        model: the name under which clients ask for it.
        host: an address of this machine.
        port: 0 takes a free one.

    Yields:
        The base address, `http://…/v1`.

    Raises:
        PolicyError: the port is taken, or the address is not this machine's.
    """
    admission = Admission(engine, model=model, host=host, limits=limits)
    application = Application(admission)
    most = 4 * limits.concurrency + 16
    try:
        with running(
            application, host, port, connections=most, timeout_s=limits.timeout_s, last=engine.stop
        ) as address:
            yield f"{address}/v1"
    finally:
        engine.stop()
        admission.close()


@contextmanager
def running(
    application: object,
    host: str,
    port: int,
    *,
    connections: int = 64,
    timeout_s: float = 30.0,
    last: Callable[[], None] | None = None,
) -> Generator[str]:
    """Runs any ASGI application until the block ends.

    Args:
        host: an address of this machine.
        port: 0 takes a free one.
        connections: at a time.
        timeout_s: for a whole request.
        last: called before the server ends, while clients may wait for an answer.

    Yields:
        The base address, `http://…`.

    Raises:
        PolicyError: the port is taken, or the address is not this machine's.
    """
    with _listening(host, port) as listener:
        server = _server(application, connections, timeout_s)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        shown = f"[{host}]" if ":" in host else host
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield f"http://{shown}:{listener.getsockname()[1]}"
        finally:
            if last is not None:
                last()  # First: whoever waits for an answer is told that none will come.
            server.should_exit = True
            thread.join()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        # For its connections: else the system keeps megabytes of answers that nobody takes.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNTAKEN_BYTES)
        return listener
    except OSError as error:
        # What Python says repeats the address; what the system says does not.
        text = str(error.strerror or error).partition(" (while attempting")[0]
        raise PolicyError(f"{host}:{port}: cannot listen: {text}") from error


def _server(application: object, connections: int, timeout_s: float) -> uvicorn.Server:
    guard = partial(Guard, most=connections, timeout_s=timeout_s)
    config = uvicorn.Config(
        cast(Any, application),
        interface="asgi3",
        http=cast(Any, guard),
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # `Application` says what was asked, and what went wrong.
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
    )
    return uvicorn.Server(config)


HEAD_BYTES = 1 << 15
"""Limit of a request's first line and headers together."""
MOST_WAITING = 64
"""Requests that a connection may send before the first of them is answered; uvicorn reads as many
as come, and clients that send a second one early are rare."""
PATIENCE_S = 10.0
"""For a head to come in, and for sent bytes to be taken; less where a request gets less."""


class Guard(asyncio.Protocol):
    """Passes everything on to uvicorn's protocol, and breaks the connection off where there are
    too many, a head is too long or too slow, too much is asked at once, or what is sent is not
    taken.

    uvicorn limits none of these: it waits for the end of a head for as long as bytes come,
    and keeps all that it is told.
    """

    def __init__(self, *, most: int, timeout_s: float, **given: Any) -> None:
        """
        Args:
            most: connections at a time.
            timeout_s: for a whole request.
            given: what uvicorn gives its protocols.
        """
        self._http = HttpToolsProtocol(**given)
        self._most = most
        self._patience_s = min(PATIENCE_S, timeout_s)
        self._transport: asyncio.Transport | None = None
        self._head = _Alarm(self._break_off)
        self._unread = _Alarm(self._break_off)
        self._request: object = None
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if len(self._http.connections) >= self._most:
            transport.abort()
            return
        self._transport = transport
        transport.set_write_buffer_limits(high=0)  # To be told of every byte that waits.
        self._http.connection_made(transport)
        self._head.set(self._patience_s)

    def data_received(self, data: bytes) -> None:
        if self._transport is None:
            return
        self._http.data_received(data)
        if len(self._http.pipeline) > MOST_WAITING:
            self._break_off()
        if self._http.cycle is not self._request:  # The end of a head has come.
            self._request = self._http.cycle
            self._head.clear()
            self._head_bytes = 0
        elif self._is_in_head():
            self._head.set(self._patience_s)
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._break_off()

    def eof_received(self) -> bool | None:
        if self._transport is not None:
            self._http.eof_received()
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._head.clear()
        self._unread.clear()
        if self._transport is not None:
            self._http.connection_lost(exc)

    def pause_writing(self) -> None:
        self._unread.set(self._patience_s)
        self._http.pause_writing()

    def resume_writing(self) -> None:
        self._unread.clear()
        self._http.resume_writing()

    def _is_in_head(self) -> bool:
        """Whether what has just come belongs to no request whose head is known."""
        cycle = cast("RequestResponseCycle | None", self._http.cycle)
        return cycle is None or cycle.response_complete or cycle.scope is not self._http.scope

    def _break_off(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class _Alarm:
    """Rings once, a while after it was first set."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """Does nothing where it is set already."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._ring)

    def clear(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
