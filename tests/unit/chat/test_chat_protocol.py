"""Requests and answers of the OpenAI-compatible protocol, as records and as bytes."""

import json
from dataclasses import fields, replace

import pytest

from forethought.chat.messages import ProtocolError
from forethought.chat.protocol import (
    ChatAnswer,
    ChatRequest,
    Choice,
    read_answer,
    read_error,
    read_models,
    write_request,
)
from forethought.serving.answers import (
    Envelope,
    Piece,
    write_answer,
    write_error,
    write_models,
    write_piece,
)
from forethought.serving.dialect import read_request
from forethought.types import FinishReason, Message

MESSAGES = (Message("user", "look"),)
CHAT = ChatRequest("m", MESSAGES)
IDS = ChatRequest("m", prompt_ids=(4, 5), logprobs=True, return_token_ids=True)
CHOICES = (
    Choice("go λ", FinishReason.LENGTH, (7, 8), (-0.5, -1.25), ((7, 9), None), (0, 3)),
    Choice("no", FinishReason.STOP, (9,), (-2.0,), (), (0,)),
)
TOLD = ChatAnswer(CHOICES, 2, 3, (4, 5), "m", "12")
ANSWER = ChatAnswer((Choice("go λ", FinishReason.LENGTH),), 5, 2, None, "m")


def body(**changes: object) -> bytes:
    content = {"model": "m", "messages": [{"role": "user", "content": "look"}]}
    return json.dumps(content | changes).encode()


@pytest.mark.parametrize(
    "request_",
    [
        ChatRequest("m", MESSAGES),
        ChatRequest("m", MESSAGES, max_tokens=7, temperature=0.0, seed=3, stream=True),
        ChatRequest("m", MESSAGES, stream=True, include_usage=True),
        ChatRequest("m", MESSAGES, logprobs=True, return_token_ids=True, n=2, top_p=0.5),
        IDS,
        ChatRequest("m", prompt_ids=(1,), stop=("a", "b"), action_choices=("x",), seed=2**127),
    ],
)
def test_a_request_comes_back_as_it_was(request_: ChatRequest) -> None:
    found = read_request(write_request(request_), is_chat=request_.prompt_ids is None)
    for field in fields(ChatRequest):
        if field.name != "messages":
            assert getattr(found, field.name) == getattr(request_, field.name)
    assert [m.text for m in found.messages] == [m.text for m in request_.messages]


def test_what_is_none_is_left_to_the_server() -> None:
    assert json.loads(write_request(ChatRequest("m", MESSAGES))).keys() == {"model", "messages"}


def test_an_answer_comes_back_as_it_was() -> None:
    assert read_answer(write_answer(CHAT, ANSWER, Envelope("x", "m", 0))) == ANSWER


@pytest.mark.parametrize("request_", [replace(IDS), replace(IDS, prompt_ids=None)])
def test_ids_and_logprobs_come_along_where_they_are_asked_for(request_: ChatRequest) -> None:
    found = read_answer(write_answer(request_, TOLD, Envelope("x", "m", 0)))
    without_offsets = tuple(replace(choice, token_offsets=()) for choice in CHOICES)
    assert found == replace(TOLD, choices=without_offsets)
    silent = replace(request_, logprobs=False, return_token_ids=False)
    found = read_answer(write_answer(silent, TOLD, Envelope("x", "m", 0)))
    assert {choice.token_ids for choice in found.choices} == {None}
    assert (found.prompt_ids, found.choices[0].logprobs) == (None, None)


@pytest.mark.parametrize(
    ("choice", "complaint"),
    [
        ({"text": "x", "token_ids": [1, 2.5]}, "token_ids is no list"),
        ({"text": "x", "token_ids": "12"}, "token_ids is no list"),
        ({"text": "x", "logprobs": {"token_logprobs": [None]}}, "logprobs hold"),
        ({"text": "x", "logprobs": {"token_logprobs": [float("nan")]}}, "logprobs hold"),
        ({"message": {"content": "x"}, "logprobs": {"content": [3]}}, "logprobs hold"),
        ({"text": 3}, "text is a int"),
    ],
)
def test_an_answer_that_would_be_misread_is_refused(
    choice: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        read_answer(json.dumps({"choices": [choice]}).encode())


def test_models_are_listed() -> None:
    listed = read_models(write_models("a", ("b",), created_s=0))
    assert listed == (("a", "forethought"), ("b", "forethought"))


@pytest.mark.parametrize("request_", [CHAT, IDS])
def test_a_piece_says_what_is_new(request_: ChatRequest) -> None:
    """Role and prompt come with the first piece alone; offsets are those of the whole text."""
    asked = replace(request_, logprobs=True, return_token_ids=True)
    new = Choice("λ!", FinishReason.STOP, (8, 9), (-1.25, -0.5), (None, (9,)), (0, 1))
    first = Piece(
        1, Choice("go ", FinishReason.LENGTH, (7,), (-0.5,), (), (0,)), 0, None, (4, 5), None
    )
    last = Piece(1, new, 3, FinishReason.STOP, (4, 5), "12")
    events = [write_piece(asked, piece, Envelope("x", "m", 0)) for piece in (first, last)]
    assert all(event.startswith(b"data: ") and event.endswith(b"\n\n") for event in events)
    begun, ended = (json.loads(event[6:]) for event in events)
    (choice,) = ended["choices"]
    assert (choice["index"], choice["token_ids"]) == (1, [8, 9])
    assert (choice["finish_reason"], begun["choices"][0]["finish_reason"]) == ("stop", None)
    assert choice["allowed_ids"] == [None, [9]]
    assert ended["metadata"] == {"weight_version": "12"}
    if request_ is CHAT:
        assert ended["object"] == "chat.completion.chunk"
        assert begun["choices"][0]["delta"] == {"role": "assistant", "content": "go "}
        assert choice["delta"] == {"content": "λ!"}
        said = [(one["token"], one["logprob"]) for one in choice["logprobs"]["content"]]
        assert said == [("λ", -1.25), ("!", -0.5)]
        assert begun["prompt_token_ids"] == [4, 5]
        assert "prompt_token_ids" not in ended
    else:
        assert (ended["object"], choice["text"]) == ("text_completion", "λ!")
        assert choice["logprobs"]["text_offset"] == [3, 4]
        assert begun["choices"][0]["prompt_token_ids"] == [4, 5]
        assert "prompt_token_ids" not in choice


@pytest.mark.parametrize(
    "changes",
    [
        {"n": 1, "top_p": 1.0, "stop": None, "tools": [], "logprobs": False},
        {"user": "me", "metadata": {"a": 1}, "response_format": {"type": "text"}},
        {"max_tokens": None, "temperature": None, "seed": None, "stream": None},
    ],
)
def test_what_changes_nothing_is_passed_over(changes: dict[str, object]) -> None:
    assert read_request(body(**changes), is_chat=True).max_tokens is None


def test_both_names_of_the_limit_are_known() -> None:
    assert read_request(body(max_completion_tokens=3), is_chat=True).max_tokens == 3
    assert read_request(body(max_tokens=4), is_chat=True).max_tokens == 4


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
        (body(stream_options=[1]), "stream_options is [1]"),
        (body(stream_options={"include_usage": 1}), "include_usage is 1"),
        (body(stream_options={"more": True}), "stream_options.more is not supported"),
        (body(max_tokens=0), "max_tokens is 0"),
        (body(max_tokens=True), "max_tokens is True"),
        (body(max_tokens=1.5), "max_tokens is 1.5"),
        (body(temperature=-1), "temperature is -1"),
        (body(temperature="hot"), "temperature is 'hot'"),
        (body(temperature=float("nan")), "temperature is nan"),
        (body(seed=2**128), "seed is"),
        (body(seed="x"), "seed is 'x'"),
        (body(n=0), "n is 0"),
        (body(n=65), "n is 65"),
        (body(top_p=0), "top_p is 0"),
        (body(top_p=1.1), "top_p is 1.1"),
        (body(stop=[""]), "stop is ['']"),
        (body(stop=3), "stop is 3"),
        (body(logprobs=2), "logprobs is 2"),
        (body(top_logprobs=2), "top_logprobs is not supported"),
        (body(return_token_ids=1), "return_token_ids is 1"),
        (body(action_choices=[]), "action_choices is no list"),
        (body(prompt=[1]), "prompt is not supported"),
        (body(tools=[{}]), "tools is not supported"),
        (body(top_k=5), "top_k is not supported"),
    ],
)
def test_what_would_change_the_answer_is_refused(sent: bytes, complaint: str) -> None:
    with pytest.raises(ProtocolError) as error:
        read_request(sent, is_chat=True)
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
    assert found == ChatAnswer((Choice("", FinishReason.STOP),))


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
