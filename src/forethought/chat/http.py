"""One request to an OpenAI-compatible endpoint, and what came back of it."""

import http.client
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from forethought.errors import PolicyError, visible

URL_VARIABLE = "OPENAI_BASE_URL"
KEY_VARIABLE = "OPENAI_API_KEY"

_LARGEST = 16 * 2**20
"""Bytes of an answer; more are no chat."""
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Endpoint:
    """Where a model is asked, and with which key."""

    url: str
    """Base address, which holds no secret: `https://…/v1`."""
    key: str | None = field(default=None, repr=False)
    """None: no key is sent."""

    def quoted(self, text: str) -> str:
        """What a server said, to be shown: less our key, should it repeat it, and without
        characters that a terminal obeys."""
        return visible(text.replace(self.key, "[key]") if self.key else text)


class Reply(NamedTuple):
    """Whatever a server answers, be it a refusal."""

    status: int
    retry_after_s: float | None
    """How long it asks to be left alone."""
    body: bytes


class NoReplyError(Exception):
    """The connection failed, broke off or took too long: nothing came, or half of it."""


def endpoint_from(environment: Mapping[str, str]) -> Endpoint:
    """The endpoint that the environment variables name.

    Args:
        environment: `os.environ`.

    Raises:
        PolicyError: no address, or none of http.
    """
    url = environment.get(URL_VARIABLE, "").strip().rstrip("/")
    if not url:
        raise PolicyError(
            f"no endpoint is named — set {URL_VARIABLE}, e.g. to https://api.openai.com/v1 or "
            f"http://127.0.0.1:8000/v1, and {KEY_VARIABLE} where a key is needed"
        )
    if not _is_plain_address(url):
        raise PolicyError(
            f"{URL_VARIABLE} is no plain address — expected http://HOST/v1 or https://HOST/v1, "
            f"without user, password or query; a key goes into {KEY_VARIABLE}"
        )
    key = environment.get(KEY_VARIABLE, "").strip()
    if not key.isascii() or not key.isprintable():
        raise PolicyError(f"{KEY_VARIABLE} holds characters that no key has — set it again")
    return Endpoint(url, key or None)


def _is_plain_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_reachable = parts.scheme in ("http", "https") and bool(parts.hostname)
        return is_reachable and parts.port != 0 and not set(url) & set("@?# ") and url.isascii()
    except ValueError:  # A port that is no number.
        return False


def post(endpoint: Endpoint, body: bytes | None, path: str, *, timeout_s: float) -> Reply:
    """Sends one request, and reads the answer to its end.

    Redirections are not followed: they would take the key elsewhere.

    Args:
        body: JSON; None only asks for the page (GET).
        path: below the endpoint's address: `/chat/completions`.

    Raises:
        NoReplyError: nothing came, or not all of it, or not in time.
    """
    headers = {"Content-Type": "application/json", "User-Agent": "forethought"}
    if endpoint.key is not None:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    request = urllib.request.Request(endpoint.url + path, body, headers)
    deadline_s = time.monotonic() + timeout_s
    try:
        with _opener().open(request, timeout=timeout_s) as response:
            content = _read(response, deadline_s)
            return Reply(response.status, _retry_after_s(response.headers), content)
    except http.client.IncompleteRead:
        raise NoReplyError("the answer broke off") from None
    except TimeoutError:
        raise NoReplyError(f"no answer within {timeout_s:g} s") from None
    except (OSError, http.client.HTTPException) as error:
        cause = getattr(error, "reason", error)  # urllib wraps what a socket says.
        if isinstance(cause, TimeoutError):
            raise NoReplyError(f"no answer within {timeout_s:g} s") from None
        text = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        raise NoReplyError(endpoint.quoted(str(text))) from None


def _opener() -> urllib.request.OpenerDirector:
    """Handlers of the usual one, less all that reacts to a status: no redirection, no exception."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _read(response: Any, deadline_s: float) -> bytes:
    content = bytearray()
    while block := response.read1(_BLOCK):
        content += block
        if len(content) > _LARGEST:
            raise http.client.HTTPException(f"the answer has more than {_LARGEST:,} bytes")
        if time.monotonic() > deadline_s:
            raise TimeoutError
    if response.length:  # Fewer bytes came than were announced.
        raise http.client.IncompleteRead(bytes(content))
    return bytes(content)


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds, from a number or a date; None where there is neither."""
    value = headers.get("Retry-After")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
