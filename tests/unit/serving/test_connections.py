"""Connections, byte by byte: what is no request, what takes too long, who has gone."""

import asyncio
import http.client
import socket
import time
from contextlib import closing, suppress
from urllib.parse import urlsplit

import pytest
import uvicorn
from uvicorn.server import ServerState

from forethought.serving.server import Guard
from tests.unit.serving.served import BODY, HEAD, N, Served, raw


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        ("Content-Length: 4001\n\n", 413),
        ("Content-Length: 9999999999999999999\n\n", 413),
        (f"Content-Length: {'9' * 5000}\n\n", 400),
        (f"Content-Length: {'0' * 5000}4001\n\n", 413),
        ("Content-Length: -1\n\n", 400),
        ("Content-Length: x\n\n", 400),
        (f"Content-Length: +{N}\n\n{BODY}", 400),
        (f"Content-Length: {N}, {N}\n\n{BODY}", 400),
        (f"Content-Length: {N}\nContent-Length: {N}\n\n{BODY}", 400),
        (f"Content-Length: {N}\nContent-Length: 4000\n\n{BODY}", 400),
        ("\n", 411),
        ("Transfer-Encoding: chunked\n\n0\n\n", 411),
        (f"Content-Length: {N}\nTransfer-Encoding: chunked\n\n{BODY}", 400),
        (f"Host: localhost\nContent-Length: {N}\n\n{BODY}", 400),
        (f"Content-Type: application/json\nContent-Length: {N}\n\n{BODY}", 400),
    ],
)
def test_a_body_of_unknown_or_too_great_length_is_not_read(
    served: Served, rest: str, status: int
) -> None:
    answer = raw(served, HEAD + rest)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert answer.count(b"HTTP/1.1") == 1, "and what follows is no request"
    assert not served.policy.requests


def test_the_body_of_a_get_is_no_request(served: Served) -> None:
    hidden = "GET /v1/models HTTP/1.1\nHost: localhost\n\n".replace("\n", "\r\n")
    asked = f"GET /v1/models HTTP/1.1\nHost: localhost\nContent-Length: {len(hidden)}\n"
    answer = raw(served, f"{asked}Connection: close\n\n{hidden}".replace("\r\n", "\n"))
    assert answer.count(b"HTTP/1.1 200 OK") == answer.count(b"HTTP/1.1") == 1


def test_two_requests_at_once_get_two_answers(served: Served) -> None:
    first = f"{HEAD}Content-Length: {N}\n\n{BODY}"
    last = f"{HEAD}Connection: close\nContent-Length: {N}\n\n{BODY}"
    assert raw(served, first + last).count(b"HTTP/1.1 200 OK") == 2


def test_why_a_large_request_is_refused_is_heard(served: Served) -> None:
    """Though its client sends all of it before it listens."""
    answer = served.send("POST", "/v1/chat/completions", b" " * 2_000_000)
    message = "the request has 2000000 bytes — expected 4000 at most"
    assert (answer.status, answer.message) == (413, message)


def test_a_body_that_does_not_come_is_not_waited_for(hasty: Served) -> None:
    answer = raw(hasty, f"{HEAD}Content-Length: 10\n\n{{")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert hasty.chat("hello").status == 200


@pytest.mark.parametrize(
    "begun",
    [
        pytest.param("", id="nothing"),
        pytest.param("\n", id="line ends"),
        pytest.param("POST /v1/chat", id="a line"),
        pytest.param(HEAD, id="headers"),
        pytest.param("GET /v1/models HTTP/1.1\nHost: localhost\n\nGET /v1", id="a second one"),
    ],
)
def test_a_head_that_does_not_end_is_not_waited_for(hasty: Served, begun: str) -> None:
    """Whether or not bytes keep coming."""
    address = urlsplit(hasty.url)
    with socket.create_connection((address.hostname or "", address.port or 0), 10) as line:
        line.sendall(begun.replace("\n", "\r\n").encode())
        with suppress(ConnectionError):
            for _ in range(200):
                line.sendall(b"\n" if begun == "\n" else b"x")
                time.sleep(0.05)
            pytest.fail("the connection was not closed")


def test_a_head_has_a_longest(served: Served) -> None:
    with suppress(ConnectionError):
        assert raw(served, HEAD + 10_000 * "X-A: aaaaaa\n" + "\n") == b""
    assert served.chat("hello").status == 200


def test_a_connection_lasts_longer_than_a_head_may(hasty: Served) -> None:
    address = urlsplit(hasty.url)
    with closing(http.client.HTTPConnection(address.hostname or "", address.port)) as line:
        for _ in range(3):
            line.request("GET", "/v1/models")
            assert line.getresponse().read()
            first = line.sock
            time.sleep(0.3)
        assert line.sock is first


def test_connections_beyond_those_that_there_is_room_for_are_closed(crowded: Served) -> None:
    address = urlsplit(crowded.url)
    lines = [
        socket.create_connection((address.hostname or "", address.port or 0), 10)
        for _ in range(4 * 1 + 16)
    ]
    with suppress(ConnectionError):
        assert raw(crowded, "GET /v1/models HTTP/1.1\nHost: localhost\n\n") == b""
    for line in lines:
        line.close()
    while True:
        with suppress(ConnectionError):
            assert crowded.chat("hello").status == 200
            return


def test_a_client_that_goes_before_its_turn_is_not_answered(served: Served) -> None:
    served.policy.let_go.clear()
    address = urlsplit(served.url)
    lines: list[socket.socket] = []
    for _ in range(2):
        line = socket.create_connection((address.hostname or "", address.port or 0), 10)
        line.sendall(f"{HEAD}Content-Length: {N}\n\n{BODY}".replace("\n", "\r\n").encode())
        while not served.policy.requests:  # The engine is at the first one.
            pass
        lines.append(line)
    while served.chat("hello", max_tokens=1).status != 429:  # Both have their room.
        pass
    lines[1].close()
    while (answer := served.chat(messages=[])).status == 429:  # Until the second one's is free.
        pass
    assert answer.status == 400
    served.policy.let_go.set()
    assert lines[0].recv(12) == b"HTTP/1.1 200"
    lines[0].close()
    assert len(served.policy.requests) == 1


def test_requests_that_come_faster_than_answers_are_not_kept(served: Served) -> None:
    address = urlsplit(served.url)
    asked = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100
    line = socket.create_connection((address.hostname or "", address.port or 0), 10)
    with closing(line), suppress(ConnectionError):
        line.sendall(asked)
        got = b"".join(iter(lambda: line.recv(1 << 16), b""))
        assert got.count(b"HTTP/1.1 200") < 100
    assert served.chat("hello").status == 200


class Wire(asyncio.Transport):
    """A connection that nobody reads."""

    is_broken_off = False

    def abort(self) -> None:
        self.is_broken_off = True

    def close(self) -> None:
        pass

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high == 0


@pytest.mark.parametrize("is_taken", [True, False])
def test_answers_that_are_not_taken_are_not_kept(is_taken: bool) -> None:
    async def use() -> bool:
        config = uvicorn.Config(lambda scope, receive, send: None, log_config=None)
        guard = Guard(
            most=1, timeout_s=0.1, config=config, server_state=ServerState(), app_state={}
        )
        wire = Wire()
        guard.connection_made(wire)
        # A head has come whole, so that its time does not count.
        guard.data_received(b"GET / HTTP/1.1\r\n\r\n")
        guard.pause_writing()
        if is_taken:
            guard.resume_writing()
        await asyncio.sleep(0.3)
        guard.connection_lost(None)
        return wire.is_broken_off

    assert asyncio.run(use()) is not is_taken
