"""Which endpoint is asked, with which key, and how: what the settings refuse."""

import pytest

from forethought.chat.http import Endpoint, endpoint_from
from forethought.configs.acting import ApiConfig
from forethought.errors import ConfigError, PolicyError

KEY = "sk-secret"


def test_where_and_with_which_key() -> None:
    found = endpoint_from({"OPENAI_BASE_URL": " https://x.org/v1/ ", "OPENAI_API_KEY": f"{KEY}\n"})
    assert found == Endpoint("https://x.org/v1", KEY)
    assert endpoint_from({"OPENAI_BASE_URL": "http://[::1]:8000/v1"}).key is None


@pytest.mark.parametrize(
    "url",
    [
        *("", "x.org/v1", "ftp://x.org", "file:///etc/passwd", "http://", "http://x:no/v1"),
        *("http://me:secret@x.org/v1", "http://x.org/v1?key=secret", "http://x.org/ v1"),
    ],
)
def test_an_address_that_is_none_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(PolicyError, match="OPENAI_BASE_URL") as error:
        endpoint_from({"OPENAI_BASE_URL": url})
    assert "secret" not in str(error.value)


def test_a_key_that_is_none_is_refused_and_not_repeated() -> None:
    with pytest.raises(PolicyError, match="OPENAI_API_KEY holds") as error:
        endpoint_from({"OPENAI_BASE_URL": "http://x/v1", "OPENAI_API_KEY": "secret\nsecret"})
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("concurrency", 0),
        ("requests_per_minute", 0.0),
        ("timeout_s", 0.0),
        ("attempts", 0),
        ("prompt_price", -1.0),
        ("examples", -1),
    ],
)
def test_settings_are_checked(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"api.{name} is"):
        ApiConfig(**{name: value})  # pyright: ignore[reportArgumentType]
