"""Messages in the format of the OpenAI-compatible API: text, and images as data URLs."""

import base64
import binascii
from collections.abc import Sequence
from io import BytesIO
from typing import Any, cast

import numpy as np
import PIL.Image

from forethought.types import Image, Message, Role

_MOST_PIXELS = 4096 * 4096
"""Limit of all images of a request: small files can unfold to images that fill the memory."""

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
"""As others call them, and as we do."""


class ProtocolError(ValueError):
    """Something is not what the protocol says; the message is one line."""


def read_messages(value: object) -> tuple[Message, ...]:
    """Messages from decoded JSON.

    Each is an object with `role` (system, developer, user, assistant) and `content`: text, or
    a list of parts, `{"type": "text", "text": …}` and at most one `{"type": "image_url",
    "image_url": {"url": "data:image/png;base64,…"}}`. The image is shown before the text,
    wherever it stands among the parts.

    Raises:
        ProtocolError: anything else, or an image that is not held in the message itself:
            addresses are never opened; or more pixels than a request may have.
    """
    if not isinstance(value, list) or not value:
        raise ProtocolError(f"messages is {_shown(value)} — expected a list of at least one")
    messages: list[Message] = []
    room = _MOST_PIXELS
    for index, item in enumerate(cast(list[object], value)):
        message = _read_message(item, f"messages[{index}]", room)
        messages.append(message)
        if message.image is not None:
            room -= message.image.shape[0] * message.image.shape[1]
    return tuple(messages)


def write_messages(messages: Sequence[Message]) -> list[Any]:
    """Messages as values for `json.dumps`; images as PNG, pixel for pixel."""
    return [{"role": message.role, "content": _write_content(message)} for message in messages]


def _read_message(value: object, where: str, room: int) -> Message:
    """
    Args:
        room: pixels that its image may have.
    """
    if not isinstance(value, dict):
        raise ProtocolError(f"{where} is {_shown(value)} — expected an object")
    message = cast(dict[str, object], value)
    role = message.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise ProtocolError(f"{where}.role is {_shown(role)} — expected {', '.join(_ROLES)}")
    content = message.get("content")
    if isinstance(content, str):
        return Message(_ROLES[role], _whole(content, where))
    if not isinstance(content, list):
        raise ProtocolError(f"{where}.content is {_shown(content)} — expected text or parts")
    texts: list[str] = []
    images: list[Image] = []
    for number, part in enumerate(cast(list[object], content)):
        _read_part(part, f"{where}.content[{number}]", texts, images, room)
    return Message(_ROLES[role], "\n".join(texts), images[0] if images else None)


def _read_part(part: object, where: str, texts: list[str], images: list[Image], room: int) -> None:
    fields = cast(dict[str, object], part) if isinstance(part, dict) else {}
    kind, text, image = fields.get("type"), fields.get("text"), fields.get("image_url")
    if kind == "text" and isinstance(text, str):
        texts.append(_whole(text, where))
    elif kind == "image_url" and isinstance(image, dict):
        if images:
            raise ProtocolError(f"{where} is a second image — expected one at most in a message")
        images.append(_read_image(cast(dict[str, object], image).get("url"), where, room))
    else:
        raise ProtocolError(f"{where} is {_shown(part)} — expected a text or an image_url")


def _read_image(url: object, where: str, room: int) -> Image:
    start, comma, data = url.partition(",") if isinstance(url, str) else ("", "", "")
    if not comma or not start.startswith("data:image/") or not start.endswith(";base64"):
        raise ProtocolError(
            f"{where}.image_url.url is {_shown(url)} — expected data:image/png;base64,…"
        )
    try:
        file = BytesIO(base64.b64decode(data, validate=True))
        with PIL.Image.open(file, formats=["PNG", "JPEG"]) as image:
            if image.width * image.height > room:
                size = f"{image.width} x {image.height}"
                raise ProtocolError(
                    f"{where}: got {size} pixels, expected {room:,} more at most — "
                    f"a request may have {_MOST_PIXELS:,}"
                )
            return np.array(image.convert("RGB"), dtype=np.uint8)
    except ProtocolError:
        raise
    except (binascii.Error, OSError, SyntaxError, ValueError, PIL.Image.DecompressionBombError):
        raise ProtocolError(f"{where}: got data that are no whole PNG or JPEG") from None


def _write_content(message: Message) -> object:
    if message.image is None:
        return message.text
    file = BytesIO()
    PIL.Image.fromarray(message.image).save(file, format="PNG")
    url = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"
    image = {"type": "image_url", "image_url": {"url": url}}
    return [image, {"type": "text", "text": message.text}]


def _whole(text: str, where: str) -> str:
    """Refuses half surrogate pairs, which no tokenizer can read."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ProtocolError(f"{where}: got half a surrogate pair, expected whole text") from None
    return text


def _shown(value: object) -> str:
    """The beginning of what was got."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
