"""The shop as a web site: people shop, and agents' stored episodes are looked at click by click.

    GET /                       goals to shop for, episodes to look at
    GET /new?goal=7             begins a shopping session
    GET, POST /shop/ID          its page; what is clicked or typed
    GET /episodes/0/3           page 3 of stored episode 0

One ASGI application, without a framework; nothing is kept but the sessions in memory.
"""

import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from forethought.environments.webshop.markup import STYLE, Replay, as_page, whole
from forethought.environments.webshop.pages import clicks_of
from forethought.environments.webshop.webshop import EVALUATION_SEEDS, WebShop

SESSIONS = 200
"""Shopping sessions that are kept; the oldest makes room."""
BODY_BYTES = 1 << 16
LISTED = 100
"""Episodes that the first page lists."""
_LOCAL = ("127.0.0.1", "localhost", "[::1]")

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Visit(NamedTuple):
    """A stored episode."""

    seed: int
    actions: tuple[str, ...]
    thoughts: tuple[str, ...]
    """What was written before each action."""
    score: float


class Response(NamedTuple):
    """An HTTP response: status, body, content type, and where it redirects to."""

    status: int
    body: str
    kind: str = "text/html; charset=utf-8"
    location: str | None = None


class _Refused(Exception):  # noqa: N818
    """A request that gets an error instead of a page."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


@dataclass
class ShopSite:
    """The site.

    Args:
        make: builds an environment; they share one catalogue.
        episodes: to be looked at.
        host: that the server listens at; requests that name another are refused, unless it is
            the whole network's.
    """

    make: Callable[[], WebShop]
    episodes: Sequence[Visit] = ()
    host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        self._sessions: OrderedDict[str, WebShop] = OrderedDict()
        self._goals = 0

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        try:
            body = await _read(scope, receive)
            response = self._respond(scope, body)
        except _Refused as refused:
            page = whole("WebShop", f'<main><p id="error">{escape(str(refused))}</p></main>')
            response = Response(refused.status, page)
        await _send(response, send)

    def _respond(self, scope: Mapping[str, Any], body: bytes) -> Response:
        self._require_host(scope)
        method, parts = scope["method"], scope["path"].strip("/").split("/")
        match method, parts:
            case "GET", ["style.css"]:
                return Response(200, STYLE, "text/css")
            case "GET", [""]:
                return Response(200, self._start())
            case "GET", ["new"]:
                return self._begin(scope["query_string"].decode("latin-1"))
            case "GET", ["shop", session]:
                return Response(200, self._page(self._session(session)))
            case "POST", ["shop", session]:
                return self._act(session, body)
            case "GET", ["episodes", number, step]:
                return Response(200, self._replay(number, step))
            case _:
                raise _Refused(404, f"{method} {scope['path'][:80]}: there is no such page")

    def _require_host(self, scope: Mapping[str, Any]) -> None:
        """A page of another site must not be able to have its own name stand for this machine.

        Raises:
            _Refused: the request is for another host.
        """
        named = next((v.decode("latin-1") for k, v in scope["headers"] if k == b"host"), "")
        name = named if named.endswith("]") else named.rpartition(":")[0] or named
        if self.host not in ("0.0.0.0", "::") and name not in (*_LOCAL, self.host):
            raise _Refused(421, f"this is not {name[:80]!r} — ask 127.0.0.1")

    def _start(self) -> str:
        rows = "".join(
            f'<tr><td><a class="link" href="/episodes/{n}/0">episode {n}</a></td>'
            f"<td>{len(visit.actions)} actions</td><td>score {visit.score:.2f}</td></tr>"
            for n, visit in enumerate(self.episodes[:LISTED])
        )
        listed = f"<h2>Stored episodes</h2><table>{rows}</table>" if rows else ""
        more = len(self.episodes) - LISTED
        listed += f"<p>and {more} more, /episodes/N/0</p>" if more > 0 else ""
        return whole(
            "WebShop",
            "<main><h2>Shop</h2><p>You get a goal. Find a product, choose its options, buy it: "
            'the score says how much of the goal it meets.</p><a class="link" id="begin" '
            f'href="/new">begin</a>{listed}</main>',
        )

    def _begin(self, query: str) -> Response:
        asked = parse_qs(query).get("goal", [str(self._goals)])[0]
        number = _whole_number(asked)
        if number is None:
            raise _Refused(400, f"goal is {asked[:40]!r} — expected a whole number")
        self._goals = number + 1
        environment = self.make()
        environment.reset(EVALUATION_SEEDS + number)
        session = secrets.token_urlsafe(12)
        self._sessions[session] = environment
        while len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        return Response(303, "", location=f"/shop/{session}")

    def _session(self, session: str) -> WebShop:
        if session not in self._sessions:
            raise _Refused(404, "this session is over or was never begun — begin at /")
        self._sessions.move_to_end(session)
        return self._sessions[session]

    def _act(self, session: str, body: bytes) -> Response:
        environment = self._session(session)
        fields = parse_qs(body.decode("utf-8", "replace"))
        if "query" in fields:
            action = f"search[{fields['query'][0]}]"
        else:
            action = fields.get("action", [""])[0]
        if environment.place.name != "done":
            label = action.removeprefix("click[").removesuffix("]")
            if not action.startswith("search[") and label.lower() not in clicks_of(
                environment.pieces
            ):
                raise _Refused(409, f"{label[:80]!r} is not on this page — go back to it")
            _step(environment, action)
        return Response(303, "", location=f"/shop/{session}")

    def _page(self, environment: WebShop, replay: Replay | None = None) -> str:
        return as_page(
            environment.shop,
            environment.place,
            environment.goal,
            environment.pieces,
            environment.purchase,
            replay,
        )

    def _replay(self, number: str, step: str) -> str:
        episode, at = _whole_number(number), _whole_number(step)
        visit = None
        if episode is not None and episode < len(self.episodes):
            visit = self.episodes[episode]
        if visit is None or at is None or at > len(visit.actions):
            raise _Refused(404, f"there are {len(self.episodes)} episodes — begin at /")
        environment = self.make()
        environment.reset(visit.seed)
        for action in visit.actions[:at]:
            _step(environment, action)
        is_over = at == len(visit.actions)
        return self._page(
            environment,
            Replay(
                address=f"/episodes/{episode}",
                step=at,
                steps=len(visit.actions),
                action=None if is_over else visit.actions[at],
                thoughts="" if is_over else visit.thoughts[at],
            ),
        )


def _step(environment: WebShop, action: str) -> None:
    """
    Raises:
        _Refused: as many actions were taken as an episode may have.
    """
    if not environment.legal_actions():
        raise _Refused(
            409, "no action is left in this episode — forethought shop --options limit_steps=100"
        )
    environment.step(action)


def _whole_number(text: str) -> int | None:
    """The number that up to nine digits say; None: the text is something else.

    `isdecimal`, since `isdigit` takes "²", which is no number to `int`.
    """
    return int(text) if text.isdecimal() and len(text) <= 9 else None


async def _read(scope: Mapping[str, Any], receive: Receive) -> bytes:
    """A request's body.

    Raises:
        _Refused: it is too long.
    """
    body = b""
    while True:
        event = await receive()
        body += event.get("body", b"")
        if len(body) > BODY_BYTES:
            raise _Refused(413, f"more than {BODY_BYTES} bytes were sent — a query is shorter")
        if not event.get("more_body"):
            return body


async def _send(response: Response, send: Send) -> None:
    headers = [
        (b"content-type", response.kind.encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"same-origin"),
        (
            b"content-security-policy",
            b"default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
            b"frame-ancestors 'none'",
        ),
    ]
    if response.location is not None:
        headers.append((b"location", response.location.encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body.encode("utf-8", "replace")})
