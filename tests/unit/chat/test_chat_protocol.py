"""Requests and answers of the chat-completions protocol, as records and as bytes."""

import json

import pytest

from forethought.chat.messages import ProtocolError
from forethought.chat.protocol import (
    ChatAnswer,
    ChatRequest,
    Envelope,
    read_answer,
    read_error,
    read_request,
    write_answer,
    write_error,
    write_events,
    write_models,
    write_request,
)
from forethought.types import FinishReason, Message

MESSAGES = (Message("user", "look"),)
ANSWER = ChatAnswer("go λ", FinishReason.LENGTH, 5, 2)


def body(**changes: object) -> bytes:
    content = {"model": "m", "messages": [{"role": "user", "content": "look"}]}
    return json.dumps(content | changes).encode()


@pytest.mark.parametrize(
    "request_",
    [
        ChatRequest("m", MESSAGES),
        ChatRequest("m", MESSAGES, max_tokens=7, temperature=0.0, seed=3, stream=True),
    ],
)
def test_a_request_comes_back_as_it_was(request_: ChatRequest) -> None:
    found = read_request(write_request(request_))
    for name in ("model", "max_tokens", "temperature", "seed", "stream"):
        assert getattr(found, name) == getattr(request_, name)
    assert found.messages[0].text == "look"


def test_what_is_none_is_left_to_the_server() -> None:
    assert json.loads(write_request(ChatRequest("m", MESSAGES))).keys() == {"model", "messages"}


def test_an_answer_comes_back_as_it_was() -> None:
    written = write_answer(ANSWER, Envelope("x", "m", 0))
    assert read_answer(written) == ANSWER


def test_events_hold_the_whole_answer() -> None:
    events = list(write_events(ANSWER, Envelope("x", "m", 0)))
    assert all(event.startswith(b"data: ") and event.endswith(b"\n\n") for event in events)
    assert events[-1] == b"data: [DONE]\n\n"
    choices = [json.loads(event[6:])["choices"][0] for event in events[:-1]]
    assert "".join(choice["delta"].get("content", "") for choice in choices) == "go λ"
    assert [choice["finish_reason"] for choice in choices] == [None, "length"]


def test_models_are_listed() -> None:
    assert [model["id"] for model in json.loads(write_models(("a",), created_s=0))["data"]] == ["a"]


@pytest.mark.parametrize(
    "changes",
    [
        {"n": 1, "top_p": 1.0, "stop": None, "tools": [], "logprobs": False},
        {"user": "me", "metadata": {"a": 1}, "response_format": {"type": "text"}},
        {"max_tokens": None, "temperature": None, "seed": None, "stream": None},
    ],
)
def test_what_changes_nothing_is_passed_over(changes: dict[str, object]) -> None:
    assert read_request(body(**changes)).max_tokens is None


def test_both_names_of_the_limit_are_known() -> None:
    assert read_request(body(max_completion_tokens=3)).max_tokens == 3
    assert read_request(body(max_tokens=4)).max_tokens == 4


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        (b"", "the body is no JSON"),
        (b"\xff", "the body is no JSON"),
        (b"[" * 100_000, "the body is no JSON"),
        (b"[]", "the body is a list"),
        (body(model=None), "model is None"),
        (body(messages=None), "messages is None"),
        (body(stream="yes"), "stream is 'yes'"),
        (body(max_tokens=0), "max_tokens is 0"),
        (body(max_tokens=True), "max_tokens is True"),
        (body(max_tokens=1.5), "max_tokens is 1.5"),
        (body(temperature=-1), "temperature is -1"),
        (body(temperature="hot"), "temperature is 'hot'"),
        (body(temperature=float("nan")), "temperature is nan"),
        (body(seed=2**63), "seed is"),
        (body(seed="x"), "seed is 'x'"),
        (body(n=2), "n is not supported"),
        (body(top_p=0.9), "top_p is not supported"),
        (body(stop=["\n"]), "stop is not supported"),
        (body(tools=[{}]), "tools is not supported"),
        (body(top_k=5), "top_k is not supported"),
    ],
)
def test_what_would_change_the_answer_is_refused(sent: bytes, complaint: str) -> None:
    with pytest.raises(ProtocolError) as error:
        read_request(sent)
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"{",
        b"null",
        b"{}",
        b'{"choices": []}',
        b'{"choices": 3}',
        b'{"choices": [null]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": 3}}]}',
        b'{"error": {"message": "no"}}',
    ],
)
def test_what_is_no_answer_is_refused(sent: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_answer(sent)


def test_an_answer_without_text_or_counts_is_an_answer() -> None:
    found = read_answer(b'{"choices": [{"message": {"content": null}}]}')
    assert found == ChatAnswer("", FinishReason.STOP, None, None)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (write_error("no such model", kind="x"), "no such model"),
        (b'{"error": "plain"}', "plain"),
        (b"<html>busy</html>", "<html>busy</html>"),
        (b"{}", "{}"),
        (b"", ""),
    ],
)
def test_what_a_server_complains_about(sent: bytes, said: str) -> None:
    assert read_error(sent) == said
