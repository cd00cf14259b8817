"""The HTTP server: `POST /v1/chat/completions` and `GET /v1/models`, with limits on everything."""

import ipaddress
import socket
import sys
import threading
import time
import traceback
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

from forethought.errors import PolicyError
from forethought.policies.chat_messages import ProtocolError
from forethought.policies.chat_protocol import (
    ChatAnswer,
    ChatRequest,
    Envelope,
    read_request,
    write_answer,
    write_error,
    write_events,
    write_models,
)
from forethought.serving.engine import Engine, StoppedError

_ANSWERS, _MODELS = "/v1/chat/completions", "/v1/models"
_BLOCK = 1 << 16
_RETRY_AFTER_S = "1"


@dataclass(frozen=True)
class Limits:
    """What a client may ask of the server."""

    request_bytes: int
    concurrency: int
    """Requests that are being answered or wait for it; more are sent away with 429."""
    timeout_s: float
    """From the last byte of a request to its answer, and from its first byte to the last."""
    max_new_tokens: int
    """Longest answer, and the length of those for which no other is asked."""


class _Refusal(Exception):  # noqa: N818 - it is what is sent, not what went wrong here
    """A request that gets an error for an answer."""

    def __init__(self, status: int, message: str, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status = status
        self.body = write_error(message, kind=kind)


class ChatServer:
    """What handlers share: the engine, the names, the limits."""

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

    def require_host(self, named: str | None) -> None:
        """Refuses a browser that was led here by a foreign name of this machine.

        Args:
            named: the request's `Host`.
        """
        host = (named or "").rpartition(":")[0] or (named or "")
        if self._is_local and not _is_loopback(host.strip("[]")):
            raise _Refusal(403, "Host is not this machine's own — ask 127.0.0.1 or localhost")

    def answer(self, request: ChatRequest) -> ChatAnswer:
        """Waits for the answer.

        Raises:
            _Refusal: an unknown model, a request that is too long, no room, no time.
        """
        if request.model != self.model:
            raise _Refusal(404, f"model {request.model!r} is not served — known: {self.model}")
        longest = self.limits.max_new_tokens
        wanted = request.max_tokens or longest
        if wanted > longest:
            raise _Refusal(400, f"max_tokens is {wanted} — expected {longest} at most")
        if not self._room.acquire(blocking=False):
            message = f"{self.limits.concurrency} requests are being answered — try again"
            raise _Refusal(429, message, "rate_limit_error")
        answer = self._engine.ask(request, max_new_tokens=wanted)
        # Room is there when the engine is done with it, not when the client has gone.
        answer.add_done_callback(lambda _: self._room.release())
        return self._wait(answer)

    def _wait(self, answer: "Future[ChatAnswer]") -> ChatAnswer:
        try:
            return answer.result(self.limits.timeout_s)
        except TimeoutError:
            answer.cancel()
            message = f"no answer within {self.limits.timeout_s:g} s — try again"
            raise _Refusal(504, message, "server_error") from None
        except PolicyError as error:
            raise _Refusal(400, str(error)) from None
        except StoppedError:
            raise _Refusal(503, "the server is ending", "server_error") from None


@contextmanager
def serving(engine: Engine, *, model: str, host: str, port: int, limits: Limits) -> Generator[str]:
    """Serves until the block ends.

    Args:
        model: the name under which clients ask for it.
        host: an address of this machine.
        port: 0 takes a free one.

    Yields:
        The base address, `http://…/v1`.

    Raises:
        PolicyError: the port is taken, or the address is not this machine's; the engine is
            stopped.
    """
    shared = ChatServer(engine, model=model, host=host, limits=limits)
    most = 4 * limits.concurrency + 16
    try:
        server = _HttpServer((host, port), _handler_for(shared), most=most)
    except OSError as error:
        engine.stop()
        raise PolicyError(f"{host}:{port}: cannot listen: {error.strerror or error}") from error
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    shown = f"[{host}]" if ":" in host else host
    try:
        yield f"http://{shown}:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _HttpServer(ThreadingHTTPServer):
    """The standard library's, which is made to be derived from, with a limit of connections."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: Any, *, most: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._connections = threading.BoundedSemaphore(most)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._connections.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # A bug. OSError: the client has gone.


def _handler_for(shared: ChatServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """One connection."""

        protocol_version = "HTTP/1.1"
        server_version = "forethought"
        sys_version = ""
        timeout = shared.limits.timeout_s

        def do_GET(self) -> None:
            self._respond(self._list)

        def do_POST(self) -> None:
            self._respond(self._chat)

        def _respond(self, respond: Any) -> None:
            """Sends what comes of a request, errors included, and says so on stderr."""
            started_s = time.monotonic()
            try:
                shared.require_host(self.headers.get("Host"))
                said = respond()
            except _Refusal as refusal:
                # What is left of the request would be taken for the next one.
                self.close_connection = True
                said = f"{refusal.status} {refusal}"
                self._send(refusal.status, refusal.body)
            except OSError:  # The client has gone, or is too slow.
                raise
            except Exception:
                traceback.print_exc()
                self.close_connection = True
                said = "500"
                self._send(500, write_error("a bug of the server's", kind="server_error"))
            seconds = time.monotonic() - started_s
            self.log_message("%s %s", f"{self.command} {seconds:.2f} s", said)

        def _list(self) -> str:
            if self.path != _MODELS:
                raise _Refusal(404, f"no such page — GET {_MODELS} or POST {_ANSWERS}")
            self._send(200, write_models((shared.model,), created_s=shared.started_s))
            return "200"

        def _chat(self) -> str:
            if self.path != _ANSWERS:
                raise _Refusal(404, f"no such page — GET {_MODELS} or POST {_ANSWERS}")
            try:
                request = read_request(self._body())
            except ProtocolError as error:
                raise _Refusal(400, str(error)) from None
            answer = shared.answer(request)
            envelope = Envelope(f"chatcmpl-{uuid4().hex}", shared.model, int(time.time()))
            if request.stream:
                self._send_events(b"".join(write_events(answer, envelope)))
            else:
                self._send(200, write_answer(answer, envelope))
            return f"200 {answer.prompt_tokens} + {answer.completion_tokens} tokens"

        def _body(self) -> bytes:
            if self.headers.get_content_type() != "application/json":
                raise _Refusal(415, "Content-Type is not application/json")
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal() or "Transfer-Encoding" in self.headers:
                raise _Refusal(411, "Content-Length is missing")
            most = shared.limits.request_bytes
            if int(length) > most:
                raise _Refusal(413, f"the request has {length} bytes — expected {most} at most")
            deadline_s = time.monotonic() + shared.limits.timeout_s
            body = bytearray()
            while len(body) < int(length):
                block = self.rfile.read1(min(_BLOCK, int(length) - len(body)))
                if not block or time.monotonic() > deadline_s:
                    raise _Refusal(408, "the request did not come whole")
                body += block
            return bytes(body)

        def _send(self, status: int, body: bytes) -> None:
            self.send_response_only(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if status == 429:
                self.send_header("Retry-After", _RETRY_AFTER_S)
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

        def _send_events(self, events: bytes) -> None:
            self.close_connection = True
            self.send_response_only(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Cache-Control", "no-cache")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(events)

    return Handler


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
