"""The shop's site without a browser: what it refuses, in one line each."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from forethought.environments.webshop.site import BODY_BYTES, SESSIONS, ShopSite, Visit
from forethought.environments.webshop.webshop import WebShop

EPISODE = Visit(0, ("search[shirt]",), ("",), 0.0)


class Client:
    """Asks a site without a server."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.site = ShopSite(WebShop, [EPISODE], host)

    def ask(
        self, method: str, address: str, body: bytes = b"", host: str = "127.0.0.1:8080"
    ) -> tuple[int, str, str]:
        """Status, text and location of the answer."""
        path, _, query = address.partition("?")
        sent: list[dict[str, Any]] = []

        async def receive() -> Mapping[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(event: dict[str, Any]) -> None:
            sent.append(event)

        scope = {
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(b"host", host.encode())],
        }
        asyncio.run(self.site(scope, receive, send))
        headers = dict(sent[0]["headers"])
        return sent[0]["status"], sent[1]["body"].decode(), headers.get(b"location", b"").decode()


@pytest.mark.parametrize(
    ("method", "address", "body", "status", "said"),
    [
        ("GET", "/nowhere", b"", 404, "there is no such page"),
        ("DELETE", "/", b"", 404, "there is no such page"),
        ("GET", "/shop/unknown", b"", 404, "this session is over or was never begun"),
        ("GET", "/new?goal=-1", b"", 400, "expected a whole number"),
        ("GET", "/new?goal=%C2%B2", b"", 400, "goal is &#x27;²&#x27; — expected a whole number"),
        ("GET", "/new?goal=1000000000", b"", 400, "expected a whole number"),
        ("GET", "/new?goal=%201", b"", 400, "expected a whole number"),
        ("GET", "/episodes/²/0", b"", 404, "there are 1 episodes"),
        ("GET", "/episodes/0/²", b"", 404, "there are 1 episodes"),
        ("GET", "/episodes/0/0000000005", b"", 404, "there are 1 episodes"),
        ("GET", "/episodes/1/0", b"", 404, "there are 1 episodes"),
        ("GET", "/episodes/0/2", b"", 404, "there are 1 episodes"),
        ("GET", f"/episodes/0/{'9' * 5000}", b"", 404, "there are 1 episodes"),
        ("POST", "/", b"x" * (BODY_BYTES + 1), 413, "a query is shorter"),
    ],
)
def test_refusals(method: str, address: str, body: bytes, status: int, said: str) -> None:
    got, text, _ = Client().ask(method, address, body)
    assert got == status
    assert said in text


def test_a_click_that_is_not_there_is_refused_and_nothing_is_lost() -> None:
    client = Client()
    _, _, session = client.ask("GET", "/new")
    assert client.ask("POST", session, b"query=shirt")[0] == 303
    before = client.ask("GET", session)
    status, text, _ = client.ask("POST", session, b"action=click%5Bb0nothing%5D")
    assert (status, "is not on this page" in text) == (409, True)
    assert client.ask("GET", session) == before
    assert client.ask("POST", session, b"")[0] == 409
    assert client.ask("POST", session, b"query=" + b"shirt+" * 10_000)[0] == 303


def test_an_s_is_searched() -> None:
    client = Client()
    _, _, session = client.ask("GET", "/new")
    assert client.ask("POST", session, b"query=men+s+shirt")[0] == 303
    assert "results for <i>men s shirt</i>" in client.ask("GET", session)[1]


def test_other_hosts_are_refused() -> None:
    """Else a page of another site could have its own name stand for this machine."""
    assert Client().ask("GET", "/", host="evil.example")[0] == 421
    assert Client().ask("GET", "/", host="localhost:8080")[0] == 200
    assert Client().ask("GET", "/", host="[::1]:8080")[0] == 200
    assert Client("0.0.0.0").ask("GET", "/", host="anything")[0] == 200


def test_the_oldest_session_makes_room() -> None:
    client = Client()
    _, _, first = client.ask("GET", "/new")
    for _ in range(SESSIONS):
        client.ask("GET", "/new")
    assert client.ask("GET", first)[0] == 404


def test_an_invalid_action_of_a_stored_episode_changes_nothing() -> None:
    client = Client()
    client.site.episodes = [Visit(0, ("click[nowhere]", "search[x]"), ("", ""), 0.0)]
    first, second = (client.ask("GET", f"/episodes/0/{step}")[1] for step in (0, 1))
    assert 'name="query"' in first
    assert 'name="query"' in second


def test_the_actions_of_an_episode_end() -> None:
    """One line for a shopper who clicks on, and for a stored episode that is longer."""
    client = Client()
    actions = ("search[shirt]", "click[back to search]") * 9
    client.site.episodes = [Visit(0, actions, ("",) * len(actions), 0.0)]
    _, _, address = client.ask("GET", "/new?goal=0")
    for number in range(15):
        moves = (b"query=shirt", b"action=click[back to search]")
        assert client.ask("POST", address, moves[number % 2])[0] == 303
    for answer in (
        client.ask("POST", address, b"action=click[back to search]"),
        client.ask("GET", "/episodes/0/16"),
    ):
        assert answer[0] == 409
        assert "no action is left in this episode" in answer[1]
    assert client.ask("GET", address)[0] == 200
    assert client.ask("GET", "/episodes/0/15")[0] == 200
