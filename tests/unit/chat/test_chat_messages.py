"""Messages as the chat-completions protocol writes them."""

import base64
from io import BytesIO

import numpy as np
import PIL.Image
import pytest

from forethought.chat import messages as chat_messages
from forethought.chat.messages import ProtocolError, read_messages, write_messages
from forethought.types import Message

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)


def data_url(kind: str) -> str:
    file = BytesIO()
    PIL.Image.fromarray(PIXELS).save(file, format=kind)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(file.getvalue()).decode()}"


def image(url: object) -> dict[str, object]:
    return {"type": "image_url", "image_url": {"url": url}}


def test_messages_come_back_as_they_were_images_pixel_for_pixel() -> None:
    messages = (
        Message("system", "Play."),
        Message("user", "λ <image>", PIXELS),
        Message("assistant", ""),
    )
    found = read_messages(write_messages(messages))
    assert [(m.role, m.text) for m in found] == [(m.role, m.text) for m in messages]
    assert found[1].image is not None
    assert np.array_equal(found[1].image, PIXELS)
    assert found[0].image is found[2].image is None


def test_parts_are_joined_and_roles_have_other_names() -> None:
    parts = [
        {"type": "text", "text": "a"},
        image(data_url("JPEG")),
        {"type": "text", "text": "b"},
    ]
    (message,) = read_messages([{"role": "developer", "content": parts}])
    assert (message.role, message.text) == ("system", "a\nb")
    assert message.image is not None
    assert message.image.shape == PIXELS.shape


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (None, "messages is None"),
        ([], "messages is [] — expected a list of at least one"),
        (["hi"], "messages[0] is 'hi' — expected an object"),
        ([{"role": "tool", "content": "x"}], "messages[0].role is 'tool'"),
        ([{"role": [], "content": "x"}], "messages[0].role is []"),
        ([{"role": "user"}], "messages[0].content is None"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0] is"),
        ([{"role": "user", "content": [7]}], "messages[0].content[0] is 7"),
        ([{"role": "user", "content": "\ud800"}], "half a surrogate pair"),
        ([{"role": "user", "content": [image("http://x/y.png")]}], "is 'http://x/y.png'"),
        ([{"role": "user", "content": [image("file:///etc/passwd")]}], "is 'file:///etc"),
        ([{"role": "user", "content": [image(None)]}], "is None"),
        (
            [{"role": "user", "content": [image("data:image/png;base64,?")]}],
            "no whole PNG or JPEG",
        ),
        (
            [{"role": "user", "content": [image(data_url("PNG")[:-40])]}],
            "no whole PNG or JPEG",
        ),
        ([{"role": "user", "content": [image(data_url("GIF"))]}], "no whole PNG or JPEG"),
        (
            [{"role": "user", "content": [image(data_url("PNG"))] * 2}],
            "content[1] is a second image",
        ),
    ],
)
def test_anything_else_is_refused(value: object, complaint: str) -> None:
    with pytest.raises(ProtocolError) as error:
        read_messages(value)
    assert complaint in str(error.value)
    assert len(str(error.value)) < 200


def test_an_image_that_would_fill_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_messages, "_MOST_PIXELS", 34)
    with pytest.raises(ProtocolError, match="got 7 x 5 pixels, expected 34 more at most"):
        read_messages([{"role": "user", "content": [image(data_url("PNG"))]}])


def test_images_that_would_fill_it_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 35 pixels each: the third finds room for 34."""
    monkeypatch.setattr(chat_messages, "_MOST_PIXELS", 104)
    shown: dict[str, object] = {"role": "user", "content": [image(data_url("PNG"))]}
    assert len(read_messages([shown, {"role": "assistant", "content": "a"}, shown])) == 3
    with pytest.raises(
        ProtocolError,
        match=r"messages\[2\].content\[0\]: got 7 x 5 pixels, expected 34 more at most — "
        "a request may have 104",
    ):
        read_messages([shown, shown, shown])
