"""The policy behind an endpoint: what it asks, and what it does when the answer does not come."""

import threading
from collections.abc import Generator
from dataclasses import dataclass, field, replace

import pytest

from forethought.chat import http as api_http
from forethought.chat import sender as api_sender
from forethought.chat.http import Endpoint
from forethought.chat.policy import ApiPolicy
from forethought.chat.protocol import ChatRequest
from forethought.chat.sender import Sender, Usage
from forethought.configs.acting import ApiConfig
from forethought.errors import PolicyError
from forethought.generation.contract import GenerationRequest
from forethought.types import FinishReason, Message, Prompt
from tests.unit.chat.chat_server import (
    BUSY,
    HALF,
    MALFORMED,
    SILENT,
    TOO_MANY,
    ChatServer,
    Fault,
    chat_server,
)

REQUEST = ChatRequest("m", (Message("user", "look"),), max_tokens=5, temperature=0.0)
KEY = "sk-secret"


@dataclass
class ManualClock:
    """Nobody waits; what would have been waited is noted."""

    seconds: float = 100.0
    waits: list[float] = field(default_factory=list[float])

    def now(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.seconds += seconds


@pytest.fixture
def server() -> Generator[ChatServer]:
    with chat_server() as running:
        yield running


def sender(server: ChatServer, clock: ManualClock | None = None, **settings: float) -> Sender:
    config = replace(ApiConfig(), **settings)
    return Sender(Endpoint(server.url, KEY), config, clock or ManualClock())


# What is asked


def test_an_answer_and_its_tokens(server: ChatServer) -> None:
    asking = sender(server)
    answer = asking.ask(REQUEST, seed=0)
    assert (answer.text, answer.finish_reason) == ("hi", FinishReason.STOP)
    assert asking.usage == Usage(answers=1, prompt_tokens=10, completion_tokens=2)
    prices = ApiConfig(prompt_price=1.0, completion_price=10.0)
    assert asking.usage.cost(prices) == pytest.approx(30e-6)
    assert server.keys == [f"Bearer {KEY}"]
    assert server.requests[0] == {
        "model": "m",
        "messages": [{"role": "user", "content": "look"}],
        "max_tokens": 5,
        "temperature": 0.0,
    }


def test_without_a_key_none_is_sent(server: ChatServer) -> None:
    Sender(Endpoint(server.url), ApiConfig(), ManualClock()).ask(REQUEST, seed=0)
    assert server.keys == [None]


# What is tried again


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(BUSY, id="500"),
        pytest.param(Fault(status=503, body=b"<html>"), id="503"),
        pytest.param(Fault(status=429), id="429"),
        pytest.param(HALF, id="half an answer"),
        pytest.param(MALFORMED, id="malformed JSON"),
        pytest.param(Fault(body=b"{}"), id="JSON of something else"),
        pytest.param(SILENT, id="closed without a word"),
    ],
)
def test_what_may_succeed_later_is_tried_again(server: ChatServer, fault: Fault) -> None:
    server.faults = [fault, fault]
    asking, clock = sender(server), ManualClock()
    asking = sender(server, clock)
    assert asking.ask(REQUEST, seed=0).text == "hi"
    assert (len(server.requests), asking.usage.retries, asking.usage.answers) == (3, 2, 1)
    # 1 s and 2 s, each shortened by up to half.
    assert len(clock.waits) == 2
    assert 0.5 <= clock.waits[0] <= 1.0 <= clock.waits[1] <= 2.0


def test_waits_double_up_to_a_minute(server: ChatServer) -> None:
    server.faults = [BUSY] * 9
    clock = ManualClock()
    with pytest.raises(PolicyError):
        sender(server, clock, attempts=9).ask(REQUEST, seed=0)
    longest = [1, 2, 4, 8, 16, 32, 60, 60]
    assert len(clock.waits) == 8  # Not behind the last attempt.
    assert all(s / 2 <= wait <= s for wait, s in zip(clock.waits, longest, strict=True))
    again = ManualClock()
    server.faults = [BUSY] * 9
    with pytest.raises(PolicyError):
        sender(server, again, attempts=9).ask(REQUEST, seed=1)
    assert clock.waits != again.waits


def test_a_slow_answer_is_given_up_and_asked_for_again(server: ChatServer) -> None:
    over = threading.Event()
    server.faults = [Fault(before=lambda: over.wait(10))]
    asking = sender(server, timeout_s=0.3)
    assert asking.ask(REQUEST, seed=0).text == "hi"
    over.set()
    assert asking.usage.retries == 1


def test_an_answer_that_never_comes_is_one_line(server: ChatServer) -> None:
    server.faults = [BUSY, HALF, MALFORMED]
    with pytest.raises(PolicyError) as error:
        sender(server, attempts=3).ask(REQUEST, seed=0)
    assert str(error.value) == (
        f"{server.url}: no answer in 3 attempts; the last time: the body is no JSON"
    )


def test_an_endpoint_that_is_not_there_is_one_line() -> None:
    asking = Sender(Endpoint("http://127.0.0.1:9/v1"), ApiConfig(attempts=2), ManualClock())
    with pytest.raises(PolicyError, match=r"127\.0\.0\.1:9/v1: no answer in 2 .*refused"):
        asking.ask(REQUEST, seed=0)


# Being asked to wait


def test_retry_after_is_respected(server: ChatServer) -> None:
    server.faults = [TOO_MANY]
    clock = ManualClock()
    sender(server, clock).ask(REQUEST, seed=0)
    assert sum(clock.waits) == pytest.approx(7.0)


def test_retry_after_may_be_a_date(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_http.time, "time", lambda: 784111770.0)
    server.faults = [Fault(503, headers={"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"})]
    clock = ManualClock()
    sender(server, clock).ask(REQUEST, seed=0)
    assert sum(clock.waits) == pytest.approx(7.0)


@pytest.mark.parametrize("value", ["soon", "", "nan", "-3"])
def test_a_retry_after_that_says_nothing_is_passed_over(server: ChatServer, value: str) -> None:
    server.faults = [Fault(429, headers={"Retry-After": value})]
    clock = ManualClock()
    sender(server, clock).ask(REQUEST, seed=0)
    assert sum(clock.waits) <= 1.0


def test_a_pause_holds_for_all_who_ask(server: ChatServer) -> None:
    server.faults = [TOO_MANY]
    clock = ManualClock()
    asking = sender(server, clock, attempts=1)
    with pytest.raises(PolicyError):
        asking.ask(REQUEST, seed=0)
    assert clock.waits == []
    asking.ask(REQUEST, seed=1)  # Another request, which failed never.
    assert clock.waits == [pytest.approx(7.0)]


def test_too_long_a_pause_is_refused(server: ChatServer) -> None:
    server.faults = [Fault(429, headers={"Retry-After": "3600"})]
    with pytest.raises(PolicyError, match=r"status 429; it asks to wait 3,600 s — try later"):
        sender(server).ask(REQUEST, seed=0)
    assert len(server.requests) == 1


def test_requests_are_spread_over_the_minute(server: ChatServer) -> None:
    clock = ManualClock()
    asking = sender(server, clock, requests_per_minute=30.0)
    for _ in range(3):
        asking.ask(REQUEST, seed=0)
    assert clock.waits == [pytest.approx(2.0)] * 2


# What is refused


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "the request cannot be answered as it is"),
        (401, "check OPENAI_API_KEY"),
        (404, "check the model's name and the address"),
        (302, "the request cannot be answered as it is"),
    ],
)
def test_a_refusal_is_one_line_and_not_tried_again(
    server: ChatServer, status: int, advice: str
) -> None:
    body = b'{"error": {"message": "no:\\n%s"}}' % KEY.encode()
    server.faults = [Fault(status, body, {"Location": f"{server.url}/elsewhere"})]
    with pytest.raises(PolicyError) as error:
        sender(server).ask(REQUEST, seed=0)
    assert str(error.value) == f"{server.url}: status {status}: no: [key] — {advice}"
    assert len(server.requests) == 1


def test_the_key_is_shown_nowhere(server: ChatServer) -> None:
    assert KEY not in repr(Endpoint(server.url, KEY))
    for body in (KEY.encode(), b'{"error": {"message": "bad key %s"}}' % KEY.encode()):
        server.faults = [Fault(500, body)]
        with pytest.raises(PolicyError) as error:
            sender(server, attempts=1).ask(REQUEST, seed=0)
        assert KEY not in str(error.value)


@pytest.mark.parametrize("status", [400, 500])
def test_what_a_server_says_is_shown_and_not_obeyed(server: ChatServer, status: int) -> None:
    for body in (b'{"error": {"message": "\\u001b[31m\\u009b"}}', "\x1b[31m\x9b".encode()):
        server.faults = [Fault(status, body)]
        with pytest.raises(PolicyError) as error:
            sender(server, attempts=1).ask(REQUEST, seed=0)
        assert f"status {status}: \\x1b[31m\\x9b" in str(error.value)


# The policy


def requests(count: int, *, temperature: float = 0.0, limit: int = 5) -> list[GenerationRequest]:
    return [
        GenerationRequest(n, Prompt((Message("user", str(n)),), ()), n << 32, limit, temperature)
        for n in range(count)
    ]


def answers(policy: ApiPolicy, asked: list[GenerationRequest]) -> dict[int, str]:
    for request in asked:
        policy.submit(request)
    found: dict[int, str] = {}
    while results := policy.advance():
        found |= {result.key: result.completion.text for result in results}
    return found


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_sender, "FIRST_WAIT_S", 0.0)


@pytest.mark.usefixtures("no_waits")
def test_every_request_gets_its_own_answer_whatever_goes_wrong(server: ChatServer) -> None:
    server.answer = lambda content: content["messages"][0]["content"]
    server.faults = [BUSY, HALF, MALFORMED, SILENT]
    policy = ApiPolicy("m", Endpoint(server.url), ApiConfig(concurrency=3))
    assert answers(policy, requests(20)) == {n: str(n) for n in range(20)}
    assert (policy.usage.answers, policy.usage.retries) == (20, 4)
    assert 1 <= server.most_at_a_time <= 3
    assert answers(policy, requests(2)) == {0: "0", 1: "1"}
    policy.close()
    assert policy.advance() == []


def test_several_requests_are_under_way_at_a_time(server: ChatServer) -> None:
    meeting = threading.Barrier(4)
    server.faults = [Fault(500, before=meeting.wait)] * 4  # Each waits for the others.
    policy = ApiPolicy("m", Endpoint(server.url), ApiConfig(concurrency=4, attempts=1))
    with pytest.raises(PolicyError, match="status 500"):
        answers(policy, requests(4))
    assert server.most_at_a_time == 4


@pytest.mark.usefixtures("no_waits")
def test_a_request_that_is_refused_ends_it(server: ChatServer) -> None:
    server.faults = [Fault(401)]
    policy = ApiPolicy("m", Endpoint(server.url), ApiConfig(concurrency=1))
    with pytest.raises(PolicyError, match="status 401"):
        answers(policy, requests(50))
    assert len(server.requests) == 1


def test_seeds_go_along_where_answers_are_drawn(server: ChatServer) -> None:
    policy = ApiPolicy("m", Endpoint(server.url), ApiConfig(concurrency=1))
    answers(policy, requests(2, temperature=0.7))
    answers(policy, requests(1))
    seeds = [request.get("seed") for request in server.requests]
    assert seeds[2] is None
    assert None not in seeds[:2]
    assert seeds[0] != seeds[1]
    assert [request["temperature"] for request in server.requests] == [0.7, 0.7, 0.0]
    policy.close()


def test_a_value_is_not_asked_for(server: ChatServer) -> None:
    policy = ApiPolicy("m", Endpoint(server.url), ApiConfig())
    (request,) = requests(1, limit=0)
    policy.submit(request)
    (result,) = policy.advance()
    assert (result.value, result.completion.text, server.requests) == (None, "", [])


def test_answers_cannot_be_held_to_actions(server: ChatServer) -> None:
    policy = ApiPolicy("m", Endpoint(server.url), ApiConfig())
    (request,) = requests(1)
    with pytest.raises(PolicyError, match="api:m cannot be held to actions"):
        policy.submit(replace(request, choices=("left", "right")))
    assert (policy.advance(), server.requests) == ([], [])


def test_half_an_answer_is_none_even_where_it_can_be_read(server: ChatServer) -> None:
    whole = b'{"choices": [{"message": {"content": "early"}}]}'
    server.faults = [Fault(body=whole, announced=len(whole) + 20)]
    assert sender(server).ask(REQUEST, seed=0).text == "hi"
