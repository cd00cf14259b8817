"""One client's connection: a request is read, its answer or its refusal is sent."""

import time
import traceback
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any
from uuid import uuid4

from forethought.policies.chat_protocol import (
    Envelope,
    write_answer,
    write_error,
    write_events,
    write_models,
)
from forethought.serving.admission import Admission, Refusal

_ANSWERS, _MODELS = "/v1/chat/completions", "/v1/models"
_BLOCK = 1 << 16
_RETRY_AFTER_S = "1"


class Connection(BaseHTTPRequestHandler):
    """Serves a client; a handler of the standard library, which is made to be derived from."""

    protocol_version = "HTTP/1.1"
    server_version = "forethought"
    sys_version = ""

    def __init__(self, admission: Admission, *connection: Any) -> None:
        """
        Args:
            connection: what the standard library's server hands over; it is served here.
        """
        self._admission = admission
        super().__init__(*connection)

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self._admission.limits.timeout_s)

    def do_GET(self) -> None:
        self._respond(self._list)

    def do_POST(self) -> None:
        self._respond(self._chat)

    def _respond(self, respond: Callable[[], str]) -> None:
        """Sends what comes of a request, errors included, and says so on stderr."""
        started_s = time.monotonic()
        try:
            self._admission.require_host(self.headers.get("Host"))
            said = respond()
        except Refusal as refusal:
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
            raise Refusal(404, f"no such page — GET {_MODELS} or POST {_ANSWERS}")
        self._send(200, write_models((self._admission.model,), created_s=self._admission.started_s))
        return "200"

    def _chat(self) -> str:
        if self.path != _ANSWERS:
            raise Refusal(404, f"no such page — GET {_MODELS} or POST {_ANSWERS}")
        request, answer = self._admission.answer(self._body())
        envelope = Envelope(f"chatcmpl-{uuid4().hex}", self._admission.model, int(time.time()))
        if request.stream:
            self._send_events(b"".join(write_events(answer, envelope)))
        else:
            self._send(200, write_answer(answer, envelope))
        return f"200 {answer.prompt_tokens} + {answer.completion_tokens} tokens"

    def _body(self) -> bytes:
        if self.headers.get_content_type() != "application/json":
            raise Refusal(415, "Content-Type is not application/json")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or "Transfer-Encoding" in self.headers:
            raise Refusal(411, "Content-Length is missing")
        most = self._admission.limits.request_bytes
        if int(length) > most:
            raise Refusal(413, f"the request has {length} bytes — expected {most} at most")
        deadline_s = time.monotonic() + self._admission.limits.timeout_s
        body = bytearray()
        while len(body) < int(length):
            block = self.rfile.read1(min(_BLOCK, int(length) - len(body)))
            if not block or time.monotonic() > deadline_s:
                raise Refusal(408, "the request did not come whole")
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
