"""What a connection may take: the limits that the HTTP server does not set by itself."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_BYTES = 1 << 15
"""Of a request's first line and headers together."""
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
