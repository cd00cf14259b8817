"""A server that speaks the chat-completions protocol, or fails to, as it is told."""

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER = {
    "choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2},
}


@dataclass
class Fault:
    """What is sent instead of an answer."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    announced: int | None = None
    """Content-Length, where it is a lie."""
    before: Callable[[], object] = lambda: None
    """Called before anything is sent."""


HALF = Fault(body=json.dumps(ANSWER).encode()[:40], announced=len(json.dumps(ANSWER)))
MALFORMED = Fault(body=json.dumps(ANSWER).encode()[:40])
BUSY = Fault(status=500, body=b'{"error": {"message": "overloaded"}}')
TOO_MANY = Fault(status=429, body=b'{"error": "slow down"}', headers={"Retry-After": "7"})
SILENT = Fault(status=-1)
"""The connection is closed without a word."""


@dataclass
class ChatServer:
    """What the server was asked, and what it is still to get wrong."""

    url: str
    faults: list[Fault] = field(default_factory=list[Fault])
    """One per request, from the first; behind the last, answers."""
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    keys: list[str | None] = field(default_factory=list[str | None])
    answer: Callable[[dict[str, Any]], str] = lambda _: "hi"
    most_at_a_time: int = 0
    at_a_time: int = 0


@contextmanager
def chat_server() -> Generator[ChatServer]:
    """Serves on a free port of this machine."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                state.requests.append(content)
                state.keys.append(self.headers.get("Authorization"))
                state.at_a_time += 1
                state.most_at_a_time = max(state.most_at_a_time, state.at_a_time)
                fault = state.faults.pop(0) if state.faults else None
            try:
                self.send(fault or self.right_answer(content))
            except BrokenPipeError:
                pass  # The client did not wait for it.
            finally:
                with lock:
                    state.at_a_time -= 1

        def right_answer(self, content: dict[str, Any]) -> Fault:
            answer = json.loads(json.dumps(ANSWER))
            answer["choices"][0]["message"]["content"] = state.answer(content)
            return Fault(body=json.dumps(answer).encode())

        def send(self, what: Fault) -> None:
            what.before()
            if what.status < 0:
                return
            self.send_response(what.status)
            for name, value in what.headers.items():
                self.send_header(name, value)
            length = len(what.body) if what.announced is None else what.announced
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(what.body)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state = ChatServer(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
