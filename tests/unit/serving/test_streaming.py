"""Answers as events: each token when it is written, and no more once the client has gone."""

import json
import socket
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import torch

from forethought.chat.protocol import ChatAnswer
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.loading import load_pretrained
from forethought.serving.engine import Engine
from forethought.serving.server import serving
from forethought.types import Message
from tests.contract.architectures.builders import write_checkpoint
from tests.unit.serving.policy import SpellingPolicy, at_most_ten_tokens
from tests.unit.serving.served import LIMITS

MESSAGES = [{"role": "user", "content": "hello"}]


@dataclass
class Spelled:
    """A server whose policy writes a character whenever a step is let go."""

    url: str
    policy: SpellingPolicy
    given_up: threading.Semaphore
    """Released for every client that goes, once the engine was told."""

    @contextmanager
    def stream(self, **fields: Any) -> Generator[Iterator[str]]:
        """The lines of an answer as they come, empty ones left out."""
        content = {"model": "m", "messages": MESSAGES, "stream": True} | fields
        with httpx.stream("POST", f"{self.url}/chat/completions", json=content) as response:
            assert response.status_code == 200
            assert response.headers["content-type"] == "text/event-stream"
            yield (line for line in response.iter_lines() if line)


def serve(**limits: Any) -> Generator[Spelled]:
    policy = SpellingPolicy()
    engine = Engine(policy, at_most_ten_tokens, seed=0)
    limited = replace(LIMITS, **limits)
    given_up, give_up = threading.Semaphore(0), engine.give_up

    def noted(answer: "Future[ChatAnswer]") -> None:
        is_done = answer.done()
        give_up(answer)
        if not is_done:
            given_up.release()

    engine.give_up = noted  # type: ignore[method-assign]
    with serving(engine, model="m", host="127.0.0.1", port=0, limits=limited) as url:
        yield Spelled(url, policy, given_up)
        policy.steps.release(100)


@pytest.fixture
def spelled() -> Generator[Spelled]:
    yield from serve()


@pytest.fixture
def narrow() -> Generator[Spelled]:
    """With room for one request."""
    yield from serve(concurrency=1)


@pytest.fixture
def hasty() -> Generator[Spelled]:
    yield from serve(timeout_s=0.5)


def read(line: str) -> dict[str, Any]:
    return json.loads(line.removeprefix("data: "))


def test_each_token_is_sent_when_it_is_written(spelled: Spelled) -> None:
    """The next character is not let go before the last one has arrived."""
    said: list[tuple[str, str | None]] = []
    spelled.policy.steps.release()
    with spelled.stream(max_tokens=4) as lines:
        for line in lines:
            if line == "data: [DONE]":
                break
            (choice,) = read(line)["choices"]
            said.append((choice["delta"]["content"], choice["finish_reason"]))
            spelled.policy.steps.release()
        assert list(lines) == []
    assert said == [("h", None), ("e", None), ("l", None), ("l", "stop")]


def test_usage_comes_last_where_it_is_asked_for(spelled: Spelled) -> None:
    spelled.policy.steps.release(9)
    with spelled.stream(stream_options={"include_usage": True}) as lines:
        *_, usage, done = lines
    assert done == "data: [DONE]"
    assert read(usage)["choices"] == []
    counts = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
    assert read(usage)["usage"] == counts


def test_what_cannot_be_answered_has_its_status(spelled: Spelled) -> None:
    for text, status in (("too long by far", 400), ("hello", 404)):
        content = {"messages": [{"role": "user", "content": text}], "stream": True}
        model = "m" if status == 400 else "other"
        url = f"{spelled.url}/chat/completions"
        assert httpx.post(url, json={"model": model} | content).status_code == status


def require_free(narrow: Spelled) -> None:
    """The one row is free, though its answer was not written to its end."""
    assert narrow.given_up.acquire(timeout=10)
    narrow.policy.steps.release()  # The engine looks between two tokens.
    url, content = f"{narrow.url}/chat/completions", {"model": "m", "messages": MESSAGES}
    narrow.policy.steps.release(5)
    for _ in range(1000):
        answer = httpx.post(url, json=content)
        if answer.status_code != 429:
            break
    assert answer.json()["choices"][0]["message"]["content"] == "hello"
    assert narrow.policy.canceled == [1]


def test_a_client_that_goes_gives_its_row_back(narrow: Spelled) -> None:
    narrow.policy.steps.release()
    with narrow.stream() as lines:
        next(lines)
    require_free(narrow)


def test_so_does_one_that_waited_for_the_whole_answer(narrow: Spelled) -> None:
    address = urlsplit(narrow.url)
    body = json.dumps({"model": "m", "messages": MESSAGES})
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
    with closing(socket.create_connection((address.hostname or "", address.port or 0))) as line:
        line.sendall(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        assert narrow.policy.begun.acquire(timeout=10)
    require_free(narrow)


def test_an_answer_that_takes_too_long_ends_in_an_error(hasty: Spelled) -> None:
    """And not in [DONE]: what came is not the whole answer."""
    hasty.policy.steps.release()
    with hasty.stream() as lines:
        *_, last = lines
    assert read(last)["error"]["message"] == "no answer within 0.5 s — try again"


# A real model


@pytest.fixture
def model(saved_model: Path) -> Generator[tuple[str, HuggingFacePolicy]]:
    yield from serve_model(str(saved_model))


@pytest.fixture
def llama(tmp_path: Path) -> Generator[tuple[str, HuggingFacePolicy]]:
    """Whose vocabulary spells what it lacks in single bytes, as Llama 2's does."""
    yield from serve_model(write_checkpoint("llama", tmp_path / "llama").folder)


def serve_model(folder: str) -> Generator[tuple[str, HuggingFacePolicy]]:
    torch.set_num_threads(1)
    policy = HuggingFacePolicy(load_pretrained(folder), slots=4)
    engine = Engine(policy, policy.require_room, seed=0)
    limits = replace(
        LIMITS, request_bytes=2**20, prompt_bytes=2**20, max_new_tokens=32, timeout_s=60.0
    )
    with serving(engine, model="m", host="127.0.0.1", port=0, limits=limits) as url:
        yield url, policy
    engine.stop()


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="one"),
        pytest.param({"n": 3}, id="three choices"),
        pytest.param({"n": 2, "top_p": 0.5}, id="a nucleus"),
        pytest.param({"is_stopped": True}, id="a text ends it"),
    ],
)
def test_pieces_add_up_to_the_whole_answer(
    model: tuple[str, HuggingFacePolicy], fields: dict[str, Any]
) -> None:
    """Text, ids, log-probs, offsets and what each token was drawn from, choice by choice."""
    url, fields = f"{model[0]}/completions", dict(fields)
    prompt = model[1].prompt((Message("user", "move the current number"),)).token_ids
    asked: dict[str, Any] = {"model": "m", "prompt": prompt, "max_tokens": 32, "seed": 3}
    asked |= {"temperature": 1.0, "logprobs": 0, "return_token_ids": True}
    if fields.pop("is_stopped", False):
        free = httpx.post(url, json=asked).json()["choices"][0]["text"]
        asked["stop"] = [free[9:14], "never written"]  # Five characters, of several tokens.
    whole, pieces = both_ways(url, asked | fields)
    assert len(pieces) > 4 * len(whole)
    assert "stop" in asked or any("\ufffd" in choice["text"] for choice in whole)
    for choice in whole:
        own = [piece for piece in pieces if piece["index"] == choice["index"]]
        assert "".join(piece["text"] for piece in own) == choice["text"]
        assert [piece["finish_reason"] for piece in own[:-1]] == [None] * (len(own) - 1)
        assert own[-1]["finish_reason"] == choice["finish_reason"]
        assert own[0]["prompt_token_ids"] == choice["prompt_token_ids"]
        for name in ("token_ids", "allowed_ids"):
            assert [*chain.from_iterable(p.get(name, []) for p in own)] == choice.get(name, [])
        for name in ("tokens", "token_logprobs", "text_offset"):
            found = [*chain.from_iterable(p["logprobs"][name] for p in own)]
            assert found == choice["logprobs"][name]
    if "stop" in asked:
        assert not any(asked["stop"][0] in piece["text"] for piece in pieces)
        assert whole[0]["finish_reason"] == "stop"


def test_bytes_that_are_no_character_after_all(llama: tuple[str, HuggingFacePolicy]) -> None:
    """Its decoder makes one character of each byte of a run that is no UTF-8, also of those that
    were sent as characters before the run had come to its end. Ids and log-probs are what they
    are; the text that came in pieces is another one."""
    prompt = llama[1].prompt((Message("user", "go on"),)).token_ids
    asked = {"model": "m", "prompt": prompt, "max_tokens": 32, "seed": 3, "temperature": 1.0}
    asked |= {"logprobs": 0, "return_token_ids": True}
    (whole,), pieces = both_ways(f"{llama[0]}/completions", asked)
    ids = [*chain.from_iterable(piece["token_ids"] for piece in pieces)]
    assert ids == whole["token_ids"]
    logprobs = [*chain.from_iterable(piece["logprobs"]["token_logprobs"] for piece in pieces)]
    assert logprobs == whole["logprobs"]["token_logprobs"]
    assert llama[1].encoder.detokenize(ids).text == whole["text"]
    joined = "".join(piece["text"] for piece in pieces)
    assert "\x07\ufffd" in joined  # Of one run: the first of its bytes was a character so far.
    assert whole["text"] == joined.replace("\x07", "\ufffd")


def both_ways(url: str, asked: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """The choices of one answer as a whole, and in pieces."""
    whole = httpx.post(url, json=asked).json()["choices"]
    with httpx.stream("POST", url, json=asked | {"stream": True}) as response:
        *lines, done = (line for line in response.iter_lines() if line)
    assert done == "data: [DONE]"
    return whole, [read(line)["choices"][0] for line in lines]
