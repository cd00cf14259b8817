"""A server with a policy whose answers are known, and its clients."""

import http.client
import json
import socket
from collections.abc import Generator
from contextlib import closing
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from forethought.serving.admission import Limits
from forethought.serving.engine import Engine
from forethought.serving.server import serving
from tests.unit.serving.policy import EchoPolicy, at_most_ten_tokens

LIMITS = Limits(
    request_bytes=4000, concurrency=2, timeout_s=5.0, prompt_bytes=500, max_new_tokens=5
)
JSON = {"Content-Type": "application/json"}


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def message(self) -> str:
        return json.loads(self.body)["error"]["message"]


class Served(NamedTuple):
    url: str
    policy: EchoPolicy
    engine: Engine

    def send(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> Answer:
        address = urlsplit(self.url)
        with closing(http.client.HTTPConnection(address.hostname or "", address.port)) as line:
            line.request(method, path, body, JSON if headers is None else headers)
            response = line.getresponse()
            return Answer(response.status, response.headers, response.read())

    def chat(self, text: str = "hello", **fields: Any) -> Answer:
        content = {"model": "m", "messages": [{"role": "user", "content": text}]} | fields
        return self.send("POST", "/v1/chat/completions", json.dumps(content).encode())


def serve(limits: Limits) -> Generator[Served]:
    policy = EchoPolicy()
    engine = Engine(policy, at_most_ten_tokens, seed=0)
    with serving(engine, model="m", host="127.0.0.1", port=0, limits=limits) as url:
        yield Served(url, policy, engine)
        policy.let_go.set()
    engine.stop()


def raw(served: Served, text: str) -> bytes:
    """Sends bytes as they are, and reads what comes back to its end."""
    address = urlsplit(served.url)
    with socket.create_connection((address.hostname or "", address.port or 0), 10) as line:
        line.sendall(text.replace("\n", "\r\n").encode())
        return b"".join(iter(lambda: line.recv(4096), b""))


HEAD = "POST /v1/chat/completions HTTP/1.1\nHost: localhost\nContent-Type: application/json\n"
BODY = '{"model": "m", "messages": [{"role": "user", "content": "hello"}]}'
N = len(BODY)
