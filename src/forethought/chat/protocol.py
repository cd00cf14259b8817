"""The chat-completions protocol: requests and answers as records, and as the bytes of JSON.

Both sides of it, the client's (`chat.policy`) and the server's (`serving`). Reading is
strict: what would change an answer and is not supported is refused, never passed over.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from forethought.chat.messages import ProtocolError, read_messages, write_messages
from forethought.types import FinishReason, Message

_NEUTRAL: dict[str, tuple[object, ...]] = {
    "n": (1,),
    "top_p": (1,),
    "stop": ([],),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "response_format": ({"type": "text"},),
}
"""What is not supported, and the values with which it changes nothing."""

_IGNORED = {"user", "metadata", "store", "stream_options", "service_tier", "safety_identifier"}
"""Says nothing about the answer."""


@dataclass(frozen=True, eq=False)
class ChatRequest:
    """What a client asks."""

    model: str
    messages: tuple[Message, ...]
    max_tokens: int | None = None
    """Longest answer; None: the server's own limit."""
    temperature: float | None = None
    """None: the server's own, by convention 1."""
    seed: int | None = None
    """Equal seeds give equal answers, where the server can."""
    stream: bool = False
    """Whether the answer comes as events."""


@dataclass(frozen=True)
class ChatAnswer:
    """What a server answers."""

    text: str
    finish_reason: FinishReason
    prompt_tokens: int | None
    """None where the server does not count."""
    completion_tokens: int | None


class Envelope(NamedTuple):
    """What stands around an answer."""

    request_id: str
    model: str
    created_s: int
    """Since 1970 (UTC)."""


# The client's side


def write_request(request: ChatRequest) -> bytes:
    """The body of a request. What is None is left to the server."""
    content: dict[str, Any] = {
        "model": request.model,
        "messages": write_messages(request.messages),
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
        "stream": request.stream or None,
    }
    present = {name: value for name, value in content.items() if value is not None}
    return json.dumps(present).encode("ascii")


def read_answer(body: bytes) -> ChatAnswer:
    """The first choice of an answer that came whole. No text, as with a refusal, is "".

    Raises:
        ProtocolError: not the JSON of an answer.
    """
    content = _object(body)
    try:
        choices = cast(list[dict[str, Any]], content["choices"])
        text: object = choices[0]["message"]["content"]
        reason: object = choices[0].get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ProtocolError("expected choices[0].message.content") from None
    if text is not None and not isinstance(text, str):
        raise ProtocolError(f"choices[0].message.content is a {type(text).__name__}, expected text")
    usage = content.get("usage")
    counts = cast(dict[str, object], usage) if isinstance(usage, dict) else {}
    return ChatAnswer(
        text=text or "",
        finish_reason=FinishReason.LENGTH if reason == "length" else FinishReason.STOP,
        prompt_tokens=_count(counts.get("prompt_tokens")),
        completion_tokens=_count(counts.get("completion_tokens")),
    )


def read_error(body: bytes) -> str:
    """What a server says about a request that it refuses; the beginning of whatever it sent
    where that is no error of this protocol."""
    try:
        error: object = _object(body).get("error")
    except ProtocolError:
        return body[:200].decode("utf-8", errors="replace")
    message = cast(dict[str, object], error).get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else body[:200].decode("utf-8", errors="replace")


# The server's side


def read_request(body: bytes) -> ChatRequest:
    """A request.

    Raises:
        ProtocolError: it is none, or asks for what is not supported.
    """
    content = {name: value for name, value in _object(body).items() if value is not None}
    model, stream = content.pop("model", None), content.pop("stream", False)
    if not isinstance(model, str):
        raise ProtocolError(f"model is {model!r} — expected a name; GET /v1/models lists them")
    if not isinstance(stream, bool):
        raise ProtocolError(f"stream is {stream!r} — expected true or false")
    request = ChatRequest(
        model=model,
        messages=read_messages(content.pop("messages", None)),
        max_tokens=_take_max_tokens(content),
        temperature=_take_temperature(content),
        seed=_take_seed(content),
        stream=stream,
    )
    for name, value in content.items():
        if name in _IGNORED or value in _NEUTRAL.get(name, ()):
            continue
        raise ProtocolError(f"{name} is not supported — leave it out")
    return request


def write_answer(answer: ChatAnswer, envelope: Envelope) -> bytes:
    """The body of an answer."""
    content = _envelope("chat.completion", envelope) | {
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": answer.text},
                "finish_reason": str(answer.finish_reason),
            }
        ],
        "usage": _usage(answer),
    }
    return json.dumps(content).encode("ascii")


def write_events(answer: ChatAnswer, envelope: Envelope) -> Iterator[bytes]:
    """An answer as server-sent events: all of its text in one, how it ended, and `[DONE]`."""
    common = _envelope("chat.completion.chunk", envelope)
    said = {"role": "assistant", "content": answer.text}
    parts = ((said, None), ({}, str(answer.finish_reason)))
    for delta, reason in parts:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        yield b"data: " + json.dumps(common | {"choices": [choice]}).encode("ascii") + b"\n\n"
    yield b"data: [DONE]\n\n"


def write_models(names: tuple[str, ...], *, created_s: int) -> bytes:
    """The list of what is served."""
    models = [
        {"id": name, "object": "model", "created": created_s, "owned_by": "forethought"}
        for name in names
    ]
    return json.dumps({"object": "list", "data": models}).encode("ascii")


def write_error(message: str, *, kind: str) -> bytes:
    """The body that goes with a status of 400 or more.

    Args:
        kind: as the protocol calls it: `invalid_request_error`, `server_error`, …
    """
    return json.dumps({"error": {"message": message, "type": kind}}).encode("ascii")


# Values


def _object(body: bytes) -> dict[str, Any]:
    try:
        content: object = json.loads(body)
    except (ValueError, RecursionError):
        raise ProtocolError("the body is no JSON") from None
    if not isinstance(content, dict):
        raise ProtocolError(f"the body is a {type(content).__name__}, expected an object")
    return cast(dict[str, Any], content)


def _take_max_tokens(content: dict[str, Any]) -> int | None:
    older, newer = content.pop("max_tokens", None), content.pop("max_completion_tokens", None)
    limit = older if newer is None else newer
    if limit is not None and not (_is_whole(limit) and limit >= 1):
        raise ProtocolError(f"max_tokens is {limit!r} — expected a whole number of 1 or more")
    return limit


def _take_temperature(content: dict[str, Any]) -> float | None:
    value = content.pop("temperature", None)
    if value is None:
        return None
    is_number = _is_whole(value) or isinstance(value, float)
    if not is_number or not 0 <= value <= 100 or not math.isfinite(value):
        raise ProtocolError(f"temperature is {value!r} — expected a number from 0 to 100")
    return float(value)


def _take_seed(content: dict[str, Any]) -> int | None:
    value = content.pop("seed", None)
    if value is not None and not (_is_whole(value) and -(2**63) <= value < 2**63):
        raise ProtocolError(f"seed is {value!r} — expected a whole number of 64 bits")
    return value


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _envelope(kind: str, envelope: Envelope) -> dict[str, Any]:
    return {
        "id": envelope.request_id,
        "object": kind,
        "created": envelope.created_s,
        "model": envelope.model,
    }


def _usage(answer: ChatAnswer) -> dict[str, int]:
    prompt, completion = answer.prompt_tokens or 0, answer.completion_tokens or 0
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
