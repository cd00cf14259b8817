"""What the server writes, as the OpenAI-compatible protocol has it: answers whole or as events."""

import json
from typing import Any, NamedTuple

from forethought.chat.protocol import ChatAnswer, ChatRequest, Choice
from forethought.types import FinishReason

OWNER = "forethought"
"""By which clients know this server: it takes seeds of 128 bits, and `action_choices`."""
DONE = b"data: [DONE]\n\n"
"""The event behind the last one."""


class Envelope(NamedTuple):
    """What is around an answer."""

    request_id: str
    model: str
    created_s: int
    """Since 1970 (UTC)."""


class Piece(NamedTuple):
    """More of a choice: what was written since the piece before."""

    number: int
    """Of the choice."""
    choice: Choice
    """The new text and tokens alone; offsets count from the start of this text."""
    start: int
    """Where the text starts in that of the choice, in characters."""
    reason: FinishReason | None
    """None: more pieces of this choice come."""
    prompt_ids: tuple[int, ...]
    """The ids that the model read."""
    weight_version: str | None


def write_answer(request: ChatRequest, answer: ChatAnswer, envelope: Envelope) -> bytes:
    """The body of an answer."""
    is_chat = request.prompt_ids is None
    kind = "chat.completion" if is_chat else "text_completion"
    content = _envelope(kind, envelope, answer.weight_version)
    choices: list[dict[str, Any]] = []
    for index, choice in enumerate(answer.choices):
        written = _choice(index, request, choice, "message")
        written["finish_reason"] = str(choice.finish_reason)
        if request.return_token_ids and not is_chat:
            written["prompt_token_ids"] = answer.prompt_ids
        choices.append(written)
    content |= {"choices": choices, "usage": _usage(answer)}
    if is_chat and request.return_token_ids:
        content["prompt_token_ids"] = answer.prompt_ids
    return json.dumps(content).encode("ascii")


def write_piece(request: ChatRequest, piece: Piece, envelope: Envelope) -> bytes:
    """A piece of an answer, as a server-sent event."""
    is_chat = request.prompt_ids is None
    written = _choice(piece.number, request, piece.choice, "delta", piece.start)
    if is_chat and piece.start > 0:
        del written["delta"]["role"]  # It is said once.
    written["finish_reason"] = None if piece.reason is None else str(piece.reason)
    content = _chunk(request, envelope, piece.weight_version) | {"choices": [written]}
    if request.return_token_ids and piece.start == 0:
        (content if is_chat else written)["prompt_token_ids"] = piece.prompt_ids
    return _event(content)


def write_usage(request: ChatRequest, answer: ChatAnswer, envelope: Envelope) -> bytes:
    """The event behind the pieces, where `stream_options.include_usage` asks for it."""
    content = _chunk(request, envelope, answer.weight_version)
    return _event(content | {"choices": [], "usage": _usage(answer)})


def write_failure(body: bytes) -> bytes:
    """The last event of an answer that ends in an error.

    Args:
        body: from `write_error`.
    """
    return b"data: " + body + b"\n\n"


def write_models(base: str, adapters: tuple[str, ...], *, created_s: int) -> bytes:
    """The list of what is served: the model, and adapters of it."""
    models = [
        {"id": name, "object": "model", "created": created_s, "owned_by": OWNER, "parent": parent}
        for name, parent in ((base, None), *((adapter, base) for adapter in adapters))
    ]
    return json.dumps({"object": "list", "data": models}).encode("ascii")


def write_done(message: str) -> bytes:
    """The body that says that weights were loaded or unloaded."""
    return json.dumps({"success": True, "message": message}).encode("ascii")


def write_error(message: str, *, kind: str) -> bytes:
    """The body that goes with a status of 400 or more.

    Args:
        kind: as the protocol calls it: `invalid_request_error`, `server_error`, …
    """
    return json.dumps({"error": {"message": message, "type": kind}}).encode("ascii")


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(content).encode("ascii") + b"\n\n"


def _chunk(request: ChatRequest, envelope: Envelope, version: str | None) -> dict[str, Any]:
    is_chat = request.prompt_ids is None
    return _envelope("chat.completion.chunk" if is_chat else "text_completion", envelope, version)


def _envelope(kind: str, envelope: Envelope, version: str | None) -> dict[str, Any]:
    content: dict[str, Any] = {
        "id": envelope.request_id,
        "object": kind,
        "created": envelope.created_s,
        "model": envelope.model,
    }
    if version is not None:
        content["metadata"] = {"weight_version": version}
    return content


def _usage(answer: ChatAnswer) -> dict[str, int]:
    prompt, completion = answer.prompt_tokens or 0, answer.completion_tokens or 0
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _choice(
    index: int, request: ChatRequest, choice: Choice, spoken: str, start: int = 0
) -> dict[str, Any]:
    """
    Args:
        spoken: what a chat calls what is said: `message`, `delta`.
        start: of the text, in that of the whole choice.
    """
    is_chat = request.prompt_ids is None
    content: dict[str, Any] = {"index": index}
    if is_chat:
        content[spoken] = {"role": "assistant", "content": choice.text}
    else:
        content["text"] = choice.text
    if request.logprobs:
        content["logprobs"] = _written_logprobs(choice, start, is_chat=is_chat)
    if request.return_token_ids:
        content["token_ids"] = choice.token_ids
    if choice.allowed_ids:
        content["allowed_ids"] = choice.allowed_ids
    return content


def _written_logprobs(choice: Choice, start: int, *, is_chat: bool) -> dict[str, Any]:
    starts, logprobs = choice.token_offsets, choice.logprobs or ()
    ends = (*starts, len(choice.text))[1:]
    tokens = [choice.text[first:end] for first, end in zip(starts, ends, strict=True)]
    if is_chat:
        return {
            "content": [
                {"token": token, "logprob": logprob, "bytes": None, "top_logprobs": []}
                for token, logprob in zip(tokens, logprobs, strict=True)
            ]
        }
    return {
        "tokens": tokens,
        "token_logprobs": logprobs,
        "text_offset": [start + offset for offset in starts],
        "top_logprobs": None,
    }
