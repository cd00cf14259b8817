"""The OpenAI-compatible protocol as the client's side writes and reads it.

Requests are records, `ChatRequest`, and so are answers, `ChatAnswer`; the server's side of the
same bytes is `dialect.py` and `answers.py` of `serving/`. A prompt goes as messages
(`/chat/completions`) or as the token ids themselves (`/completions`). Names of fields beyond
OpenAI's are vLLM's: `return_token_ids` asks for the ids that were read (`prompt_token_ids`) and
drawn (`token_ids`); SGLang's `metadata.weight_version` says which weights wrote the answer.
`action_choices` and `allowed_ids` are our own: what an answer's action field is held to, and what
each token was drawn from.
"""

import json
import math
from dataclasses import dataclass
from typing import Any, cast

from forethought.chat.messages import ProtocolError, write_messages
from forethought.types import FinishReason, Message

CHAT, COMPLETIONS = "/chat/completions", "/completions"
"""Below the base address: for messages, and for token ids."""


@dataclass(frozen=True, eq=False)
class ChatRequest:
    """What a client asks."""

    model: str
    messages: tuple[Message, ...] = ()
    prompt_ids: tuple[int, ...] | None = None
    """The prompt as the model reads it, instead of messages."""
    max_tokens: int | None = None
    """Longest answer; None: the server's own limit."""
    temperature: float | None = None
    """None: the server's own, by convention 1."""
    top_p: float | None = None
    """Nucleus that tokens are drawn from; None: by convention 1, all."""
    n: int | None = None
    """Answers to the prompt; None: 1. The i-th one's seed is `seed` + i."""
    seed: int | None = None
    """Equal seeds give equal answers, where the server can."""
    stop: tuple[str, ...] = ()
    """Texts that end the answer, and are no part of its text."""
    logprobs: bool = False
    """Whether the answer says how likely each token was in the distribution it was drawn from."""
    return_token_ids: bool = False
    """Whether the ids that were read and drawn come along."""
    action_choices: tuple[str, ...] | None = None
    """Actions that the action field is held to."""
    stream: bool = False
    """Whether the answer comes as events, while it is written."""
    include_usage: bool = False
    """Whether the last event counts the tokens."""

    @property
    def path(self) -> str:
        """Where it is sent, below the base address."""
        return CHAT if self.prompt_ids is None else COMPLETIONS


@dataclass(frozen=True)
class Choice:
    """One of the answers to a prompt."""

    text: str
    finish_reason: FinishReason
    token_ids: tuple[int, ...] | None = None
    """None: they were not asked for, or the server does not give them."""
    logprobs: tuple[float, ...] | None = None
    allowed_ids: tuple[tuple[int, ...] | None, ...] = ()
    """As `Completion` has them."""
    token_offsets: tuple[int, ...] = ()
    """Where each token's characters start in `text`; what the server's side writes."""


@dataclass(frozen=True)
class ChatAnswer:
    """What a server answers."""

    choices: tuple[Choice, ...]
    prompt_tokens: int | None = None
    """None where the server does not count."""
    completion_tokens: int | None = None
    """Tokens of all choices."""
    prompt_ids: tuple[int, ...] | None = None
    """The ids that the model read."""
    model: str | None = None
    weight_version: str | None = None
    """Version of the weights that wrote it, where the server says."""

    @property
    def text(self) -> str:
        """Text of the first choice."""
        return self.choices[0].text

    @property
    def finish_reason(self) -> FinishReason:
        """Finish reason of the first choice."""
        return self.choices[0].finish_reason


def write_request(request: ChatRequest, more: dict[str, Any] | None = None) -> bytes:
    """The body of a request. What is None is left to the server.

    Args:
        more: fields that only some servers know.
    """
    is_chat = request.prompt_ids is None
    # In the one protocol whether, in the other how many others beside the one that was drawn.
    logprobs = (True if is_chat else 0) if request.logprobs else None
    content: dict[str, Any] = {
        "model": request.model,
        "messages": write_messages(request.messages) if is_chat else None,
        "prompt": request.prompt_ids,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "n": request.n,
        "seed": request.seed,
        "stop": request.stop or None,
        "logprobs": logprobs,
        "return_token_ids": request.return_token_ids or None,
        "action_choices": request.action_choices,
        "stream": request.stream or None,
        "stream_options": {"include_usage": True} if request.include_usage else None,
        **(more or {}),
    }
    present = {name: value for name, value in content.items() if value is not None}
    return json.dumps(present).encode("ascii")


def read_answer(body: bytes) -> ChatAnswer:
    """An answer that came whole, to messages or to ids. No text, as with a refusal, is "".

    Raises:
        ProtocolError: not the JSON of an answer.
    """
    content = read_object(body)
    choices: object = content.get("choices")
    if not isinstance(choices, list) or not choices:
        raise ProtocolError("expected choices[0]")
    usage = content.get("usage")
    counts = cast(dict[str, object], usage) if isinstance(usage, dict) else {}
    first = cast(list[object], choices)[0]
    # vLLM: of chats beside the choices, else in each of them.
    ids = content.get("prompt_token_ids")
    if ids is None and isinstance(first, dict):
        ids = cast(dict[str, object], first).get("prompt_token_ids")
    metadata: object = content.get("metadata")
    version = metadata.get("weight_version") if isinstance(metadata, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    model = content.get("model")
    return ChatAnswer(
        choices=tuple(_read_choice(choice) for choice in cast(list[object], choices)),
        prompt_tokens=_count(counts.get("prompt_tokens")),
        completion_tokens=_count(counts.get("completion_tokens")),
        prompt_ids=None if ids is None else _ids(ids, "prompt_token_ids"),
        model=model if isinstance(model, str) else None,
        weight_version=None if version is None else str(version),  # pyright: ignore[reportUnknownArgumentType]
    )


def read_models(body: bytes) -> tuple[tuple[str, str], ...]:
    """Name and owner of each model that a server lists, in its order.

    Raises:
        ProtocolError: not the JSON of such a list.
    """
    listed = read_object(body).get("data")
    if not isinstance(listed, list):
        raise ProtocolError("expected data, a list of models")
    found: list[tuple[str, str]] = []
    for item in cast(list[object], listed):
        fields = cast(dict[str, object], item) if isinstance(item, dict) else {}
        if not isinstance(fields.get("id"), str):
            raise ProtocolError("expected an id for every model")
        found.append((str(fields["id"]), str(fields.get("owned_by", ""))))
    return tuple(found)


def read_error(body: bytes) -> str:
    """What a server says about a request that it refuses; the beginning of whatever it sent
    where that is no error of this protocol."""
    try:
        error: object = read_object(body).get("error")
    except ProtocolError:
        return body[:200].decode("utf-8", errors="replace")
    message = cast(dict[str, object], error).get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else body[:200].decode("utf-8", errors="replace")


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is.

    Raises:
        ProtocolError: it is none.
    """
    try:
        content: object = json.loads(body)
    except (ValueError, RecursionError):
        raise ProtocolError("the body is no JSON") from None
    if not isinstance(content, dict):
        raise ProtocolError(f"the body is a {type(content).__name__}, expected an object")
    return cast(dict[str, Any], content)


def is_whole(value: object) -> bool:
    """Whether a decoded value is a whole number; `true` is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def _read_choice(value: object) -> Choice:
    choice = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    message: object = choice.get("message")
    where = "message.content" if "text" not in choice else "text"
    text: object = choice.get("text")
    if isinstance(message, dict):
        text = cast(dict[str, object], message).get("content")
    elif "text" not in choice:
        raise ProtocolError("expected choices[0].message.content")
    if text is not None and not isinstance(text, str):
        raise ProtocolError(f"choices[0].{where} is a {type(text).__name__}, expected text")
    ids = choice.get("token_ids")
    return Choice(
        text=text or "",
        finish_reason=(
            FinishReason.LENGTH if choice.get("finish_reason") == "length" else FinishReason.STOP
        ),
        token_ids=None if ids is None else _ids(ids, "token_ids"),
        logprobs=_logprobs(choice.get("logprobs")),
        allowed_ids=_allowed(choice.get("allowed_ids")),
    )


def _logprobs(value: object) -> tuple[float, ...] | None:
    """Log-probs of `{"token_logprobs": […]}`, or of chats' `{"content": [{"logprob": …}, …]}`."""
    fields = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    content = fields.get("content")
    found: object = fields.get("token_logprobs")
    if isinstance(content, list):
        tokens = cast(list[object], content)
        found = [
            cast(dict[str, Any], t).get("logprob") if isinstance(t, dict) else None for t in tokens
        ]
    if found is None:
        return None
    numbers = cast(list[object], found) if isinstance(found, list) else [None]
    if not all(isinstance(n, float | int) and math.isfinite(n) for n in numbers):
        raise ProtocolError("logprobs hold what is no number")
    return tuple(float(cast(float, n)) for n in numbers)


def _allowed(value: object) -> tuple[tuple[int, ...] | None, ...]:
    rows = cast(list[object], value) if isinstance(value, list) else []
    return tuple(None if row is None else _ids(row, "allowed_ids") for row in rows)


def _ids(value: object, name: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(is_whole(i) for i in cast(list[object], value)):
        raise ProtocolError(f"{name} is no list of token ids")
    return tuple(cast(list[int], value))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
