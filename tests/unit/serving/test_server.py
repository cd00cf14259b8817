"""The HTTP server: what it answers, and what it refuses."""

import gc
import http.client
import json
import threading
import weakref
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from forethought.chat.messages import ProtocolError, write_messages
from forethought.chat.protocol import ChatRequest, read_answer
from forethought.serving import admission
from forethought.serving.engine import Engine
from forethought.serving.server import serving
from forethought.types import Message
from tests.unit.serving.policy import EchoPolicy, at_most_ten_tokens
from tests.unit.serving.served import JSON, LIMITS, Answer, Served


def test_a_chat(served: Served) -> None:
    answer = served.chat("hello", max_tokens=3, temperature=0, seed=4)
    assert answer.status == 200
    assert read_answer(answer.body).text == "hel"
    content = json.loads(answer.body)
    assert (content["object"], content["model"]) == ("chat.completion", "m")
    assert content["usage"] == {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
    (request,) = served.policy.requests
    assert (request.max_new_tokens, request.temperature, request.seed) == (3, 0.0, 4)


def test_a_request_that_asks_for_no_length_gets_the_longest(served: Served) -> None:
    assert read_answer(served.chat("hello").body).text == "hello"
    assert served.policy.requests[0].max_new_tokens == 5


def test_images_come_pixel_for_pixel(served: Served) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (6, 5, 3), dtype=np.uint8)
    served.chat(messages=write_messages((Message("user", "see", pixels),)))
    (message,) = served.policy.requests[0].prompt.messages
    assert message.image is not None
    assert np.array_equal(message.image, pixels)


def test_models(served: Served) -> None:
    answer = served.send("GET", "/v1/models")
    assert answer.status == 200
    assert [model["id"] for model in json.loads(answer.body)["data"]] == ["m"]


def test_a_connection_serves_several_requests(served: Served) -> None:
    address = urlsplit(served.url)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "a"}]})
    with closing(http.client.HTTPConnection(address.hostname or "", address.port)) as line:
        for _ in range(3):
            line.request("POST", "/v1/chat/completions", body, JSON)
            assert line.getresponse().read()
            assert line.sock is not None


# Refusals


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"model": "other"}, 404, "model 'other' is not served — known: m"),
        ({"messages": []}, 400, "messages is [] — expected a list of at least one"),
        ({"max_tokens": 6}, 400, "max_tokens is 6 — expected 5 at most"),
        ({"temperature": -1}, 400, "temperature is -1 — expected a number from 0 to 100"),
        ({"top_k": 3}, 400, "top_k is not supported — leave it out"),
        ({"text": "abcdefgh"}, 400, "prompt and answer have more than 10 tokens"),
        (
            {"text": "ä" * 250},
            400,
            "the prompt has 516 bytes of text — expected 500 at most, since this model reads no "
            "more; shorten it",
        ),
        (
            {"messages": [{"role": "user", "content": ""}] * 40},
            400,
            "the prompt has 640 bytes of text — expected 500 at most, since this model reads no "
            "more; shorten it",
        ),
    ],
)
def test_a_request_that_cannot_be_answered(
    served: Served, fields: dict[str, Any], status: int, message: str
) -> None:
    answer = served.chat(**fields)
    assert (answer.status, answer.message) == (status, message)
    assert served.chat("hello").status == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("GET", "/", b"", None, 404),
        ("GET", "/v1/chat/completions", b"", None, 405),
        ("POST", "/v1/models", b"{}", None, 405),
        ("POST", "/v1/chat/completions", b"{", None, 400),
        ("POST", "/v1/chat/completions", b"{}", {"Content-Type": "text/plain"}, 415),
        ("POST", "/v1/chat/completions", b"{}", {}, 415),
        ("PUT", "/v1/models", b"{}", None, 405),
        ("GET", "/v1/models", b"", {"Host": "evil.example:8000"}, 403),
        ("GET", "/v1/models", b"", {"Host": "localhost:8000"}, 200),
        ("GET", "/v1/models", b"", {"Host": "[::1]:8000"}, 200),
    ],
)
def test_what_is_no_chat(
    served: Served, method: str, path: str, body: bytes, headers: dict[str, str] | None, status: int
) -> None:
    assert served.send(method, path, body, headers).status == status


# Limits


def test_more_requests_than_there_is_room_for_are_sent_away(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third comes when the engine has been asked for both others, not before."""
    served.policy.let_go.clear()
    asked, ask = threading.Semaphore(0), served.engine.ask

    def noted(*args: Any, **fields: Any) -> Any:
        answer = ask(*args, **fields)
        asked.release()
        return answer

    monkeypatch.setattr(served.engine, "ask", noted)
    answers: list[Answer] = []
    waiting = [
        threading.Thread(target=lambda: answers.append(served.chat("hello"))) for _ in range(2)
    ]
    for thread in waiting:
        thread.start()
    assert all(asked.acquire(timeout=10) for _ in waiting)
    third = served.chat("hello", max_tokens=1)
    assert third.status == 429
    assert (third.headers["Retry-After"], third.message[:2]) == ("1", "2 ")
    served.policy.let_go.set()
    for thread in waiting:
        thread.join()
    assert [answer.status for answer in answers] == [200, 200]
    assert served.chat("hello").status == 200


def test_a_request_is_read_when_there_is_room_for_it(narrow: Served) -> None:
    """What it holds may be many times as large as its body."""
    narrow.policy.let_go.clear()
    assert narrow.chat("hello").status == 504
    assert narrow.chat(messages=[]).status == 429
    narrow.policy.let_go.set()
    while (answer := narrow.chat(messages=[])).status == 429:
        pass
    assert answer.status == 400
    assert narrow.chat("hello").status == 200, "a refused request leaves its room"


def test_an_answer_that_takes_too_long_is_a_504(hasty: Served) -> None:
    hasty.policy.let_go.clear()
    late = hasty.chat("hello")
    assert (late.status, late.message) == (504, "no answer within 0.2 s — try again")
    hasty.policy.let_go.set()
    while (answer := hasty.chat("hello")).status == 429:
        pass
    assert answer.status == 200


def test_room_is_free_when_the_answer_is_done_not_when_the_client_has_gone(narrow: Served) -> None:
    narrow.policy.let_go.clear()
    assert narrow.chat("hello").status == 504
    assert narrow.chat("hello").status == 429


def test_a_bug_is_a_500_and_the_server_goes_on(
    served: Served, capfd: pytest.CaptureFixture[str]
) -> None:
    assert served.chat("a bug").status == 500
    assert served.chat("hello").status == 200
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_what_a_client_says_is_shown_and_not_obeyed(
    served: Served, capfd: pytest.CaptureFixture[str]
) -> None:
    served.send("GET", "/%1b%5b31m")
    served.chat(model="\x1b[31m\x9b")
    said = capfd.readouterr().err
    assert "GET /\\x1b[31m " in said
    assert not set("\x1b\x9b") & set(said)


def test_a_refused_request_is_let_go_of(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: what it holds may be a hundred times as large as its body."""
    held: list[weakref.ref[threading.Event]] = []

    def read(body: bytes, *, is_chat: bool) -> ChatRequest:
        content = threading.Event()  # Anything that can be watched.
        held.append(weakref.ref(content))
        raise ProtocolError("no request")

    monkeypatch.setattr(admission, "read_request", read)
    gc.disable()
    try:
        assert served.chat("hello").status == 400
        assert [content() for content in held] == [None]
    finally:
        gc.enable()


def test_whoever_waits_is_told_that_the_server_ends() -> None:
    policy = EchoPolicy()
    policy.let_go.clear()
    engine = Engine(policy, at_most_ten_tokens, seed=0)
    answers: list[Answer] = []
    with serving(engine, model="m", host="127.0.0.1", port=0, limits=LIMITS) as url:
        served = Served(url, policy, engine)
        waiting = threading.Thread(target=lambda: answers.append(served.chat("hello")))
        waiting.start()
        while not policy.requests:
            pass
        threading.Timer(0.2, policy.let_go.set).start()  # The token that it is at is waited for.
    waiting.join()
    assert answers[0].status in (200, 503)
    assert not engine_threads()


def engine_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "forethought-engine"]
