"""The OpenAI-compatible protocol as the server's side reads it; `answers.py` writes it.

Reading is strict: what would change an answer and is not supported is refused, never passed over.
"""

import math
from typing import Any, NamedTuple, cast

from forethought.chat.messages import ProtocolError, read_messages
from forethought.chat.protocol import ChatRequest, is_whole, read_object

MOST_CHOICES = 64
"""Answers to one request."""
_NEUTRAL: dict[str, tuple[object, ...]] = {
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "logit_bias": ({},),
    "top_logprobs": (0,),
    "top_k": (0, -1),
    "min_p": (0,),
    "min_tokens": (0,),
    "ignore_eos": (False,),
    "stop_token_ids": ([],),
    "skip_special_tokens": (True,),
    "add_special_tokens": (False,),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "echo": (False,),
    "best_of": (1,),
    "suffix": ("",),
}
"""What is not supported, and the values with which it changes nothing."""
_IGNORED = {"user", "metadata", "store", "service_tier", "safety_identifier"}
"""Says nothing about the answer."""


class AdapterRequest(NamedTuple):
    """Adapters to be loaded under a name (vLLM's `/v1/load_lora_adapter`)."""

    name: str
    path: str


class WeightsRequest(NamedTuple):
    """All weights, to be read from a folder (SGLang's `/update_weights_from_disk`)."""

    path: str
    version: str | None


def read_request(body: bytes, *, is_chat: bool) -> ChatRequest:
    """A request for answers, to messages or to token ids.

    Raises:
        ProtocolError: it is none, or asks for what is not supported.
    """
    content = _present(body)
    request = ChatRequest(
        model=_take_text(content, "model", "; GET /v1/models lists them"),
        messages=read_messages(content.pop("messages", None)) if is_chat else (),
        prompt_ids=None if is_chat else _take_ids(content),
        max_tokens=_take_max_tokens(content),
        temperature=_take_number(content, "temperature", 0, 100),
        top_p=_take_top_p(content),
        n=_take_n(content),
        seed=_take_seed(content),
        stop=_take_stop(content),
        logprobs=_take_logprobs(content, is_chat=is_chat),
        return_token_ids=_take_switch(content, "return_token_ids"),
        action_choices=_take_actions(content),
        stream=_take_switch(content, "stream"),
        include_usage=_take_stream_options(content),
    )
    _refuse_rest(content)
    return request


def read_adapter(body: bytes) -> AdapterRequest:
    """Which adapters are to be loaded.

    Raises:
        ProtocolError: it does not say.
    """
    content = _present(body)
    found = AdapterRequest(_take_text(content, "lora_name"), _take_text(content, "lora_path"))
    _refuse_rest(content)
    return found


def read_adapter_name(body: bytes) -> str:
    """Which adapters are to be unloaded.

    Raises:
        ProtocolError: it does not say.
    """
    content = _present(body)
    name = _take_text(content, "lora_name")
    _refuse_rest(content)
    return name


def read_weights(body: bytes) -> WeightsRequest:
    """Which weights are to be read.

    Raises:
        ProtocolError: it does not say.
    """
    content = _present(body)
    version = _take_text(content, "weight_version") if "weight_version" in content else None
    found = WeightsRequest(_take_text(content, "model_path"), version)
    _refuse_rest(content)
    return found


# Fields of a request; each is taken out, so that what is left is unknown


def _present(body: bytes) -> dict[str, Any]:
    return _without_none(read_object(body))


def _without_none(content: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if value is not None}


def _refuse_rest(content: dict[str, Any]) -> None:
    for name, value in content.items():
        if name in _IGNORED or value in _NEUTRAL.get(name, ()):
            continue
        raise ProtocolError(f"{name} is not supported — leave it out")


def _take_text(content: dict[str, Any], name: str, hint: str = "") -> str:
    value = content.pop(name, None)
    if not isinstance(value, str):
        raise ProtocolError(f"{name} is {value!r} — expected a name{hint}")
    return value


def _take_switch(content: dict[str, Any], name: str) -> bool:
    value = content.pop(name, False)
    if not isinstance(value, bool):
        raise ProtocolError(f"{name} is {value!r} — expected true or false")
    return value


def _take_stream_options(content: dict[str, Any]) -> bool:
    """Whether the last event is to count the tokens."""
    value = content.pop("stream_options", {})
    if not isinstance(value, dict):
        raise ProtocolError(f"stream_options is {value!r} — expected an object")
    options = _without_none(cast(dict[str, Any], value))
    is_wanted = _take_switch(options, "include_usage")
    for name, option in options.items():
        if option is not False:
            raise ProtocolError(f"stream_options.{name} is not supported — leave it out")
    return is_wanted


def _take_ids(content: dict[str, Any]) -> tuple[int, ...]:
    value = content.pop("prompt", None)
    is_list = isinstance(value, list) and bool(value)  # pyright: ignore[reportUnknownArgumentType]
    if not is_list or not all(is_whole(i) for i in cast(list[object], value)):
        raise ProtocolError("prompt is no list of token ids — send text as messages of a chat")
    return tuple(cast(list[int], value))


def _take_max_tokens(content: dict[str, Any]) -> int | None:
    older, newer = content.pop("max_tokens", None), content.pop("max_completion_tokens", None)
    limit = older if newer is None else newer
    if limit is not None and not (is_whole(limit) and limit >= 1):
        raise ProtocolError(f"max_tokens is {limit!r} — expected a whole number of 1 or more")
    return limit


def _take_number(content: dict[str, Any], name: str, least: float, most: float) -> float | None:
    value = content.pop(name, None)
    if value is None:
        return None
    is_number = is_whole(value) or isinstance(value, float)
    if not is_number or not least <= value <= most or not math.isfinite(value):
        raise ProtocolError(f"{name} is {value!r} — expected a number from {least} to {most}")
    return float(value)


def _take_top_p(content: dict[str, Any]) -> float | None:
    value = _take_number(content, "top_p", 0, 1)
    if value == 0:
        raise ProtocolError("top_p is 0 — expected a number above 0, at most 1")
    return value


def _take_n(content: dict[str, Any]) -> int | None:
    value = content.pop("n", None)
    if value is not None and not (is_whole(value) and 1 <= value <= MOST_CHOICES):
        raise ProtocolError(f"n is {value!r} — expected a whole number from 1 to {MOST_CHOICES}")
    return value


def _take_seed(content: dict[str, Any]) -> int | None:
    value = content.pop("seed", None)
    if value is not None and not (is_whole(value) and -(2**63) <= value < 2**128):
        raise ProtocolError(f"seed is {value!r} — expected a whole number below 2**128")
    return value


def _take_stop(content: dict[str, Any]) -> tuple[str, ...]:
    value = content.pop("stop", [])
    texts = [value] if isinstance(value, str) else value
    is_list = isinstance(texts, list) and all(
        isinstance(t, str) and t for t in cast(list[object], texts)
    )
    if not is_list:
        raise ProtocolError(f"stop is {value!r} — expected a text, or a list of texts")
    return tuple(cast(list[str], texts))


def _take_logprobs(content: dict[str, Any], *, is_chat: bool) -> bool:
    """Whether the log-prob of each drawn token is wanted; those of others are not given."""
    value = content.pop("logprobs", None)
    if value is None or (is_chat and isinstance(value, bool)):
        return bool(value)
    if is_chat or isinstance(value, bool) or value != 0:
        expected = "true or false" if is_chat else "0: the log-prob of the drawn token alone"
        raise ProtocolError(f"logprobs is {value!r} — expected {expected}")
    return True


def _take_actions(content: dict[str, Any]) -> tuple[str, ...] | None:
    value = content.pop("action_choices", None)
    if value is None:
        return None
    is_list = isinstance(value, list) and bool(value)  # pyright: ignore[reportUnknownArgumentType]
    if not is_list or not all(isinstance(a, str) for a in cast(list[object], value)):
        raise ProtocolError("action_choices is no list of actions")
    return tuple(cast(list[str], value))
