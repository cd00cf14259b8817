"""`evaluate` and `collect` with a model behind an endpoint."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from forethought.chat import sender as api_sender
from forethought.rollouts.store import read_shards
from tests.unit.chat.chat_server import BUSY, HALF, MALFORMED, ChatServer, Fault, chat_server
from tests.unit.cli.terminal import Type

KEY = "sk-very-secret"
EVALUATE = "evaluate api:some/model --environment.id Bandit --episodes 6"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Generator[ChatServer]:
    monkeypatch.setattr(api_sender, "FIRST_WAIT_S", 0.0)
    with chat_server() as running:
        running.answer = lambda content: '{"action": "a"}'
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield running


def test_evaluate_plays_through_faults_and_counts(type_: Type, server: ChatServer) -> None:
    server.faults = [BUSY, HALF, MALFORMED]
    outcome = type_(f"{EVALUATE} --api.prompt-price 100 --api.completion-price 1000")
    assert outcome.code == 0
    assert "Bandit, 6 held-out episodes, greedy" in outcome.out
    steps = len(server.requests) - 3
    assert outcome.lines[-1] == (
        f"api: {steps} responses, 3 retries, {10 * steps} tokens of prompts, {2 * steps} of "
        f"completions, ${steps * 3e-3:.4f}"
    )
    assert {request["model"] for request in server.requests} == {"some/model"}
    assert {request["max_tokens"] for request in server.requests} == {128}
    assert KEY not in outcome.out + outcome.err


def test_json_is_json_alone(type_: Type, server: ChatServer) -> None:
    outcome = type_(f"{EVALUATE} --json")
    assert json.loads(outcome.out)["episodes"] == 6
    assert "api: " in outcome.err


def test_react_asks_for_thoughts_and_shows_episodes(type_: Type, server: ChatServer) -> None:
    server.answer = lambda _: 'Thought: why not\nAction: {"action": "a"}'
    outcome = type_(f"{EVALUATE} --api.style react --api.examples 2 --json")
    assert json.loads(outcome.out)["invalid_rate"] == 0.0
    roles = [message["role"] for message in server.requests[0]["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]


def test_collect_stores_what_was_said_and_no_key(type_: Type, server: ChatServer) -> None:
    words = "collect --policy api:m --environment.id Bandit --episodes 4 --output data"
    assert type_(words).code == 0
    stored = list(read_shards(Path("data")))
    assert [step.completion.text for t in stored for step in t.steps] == ['{"action": "a"}'] * 4
    record = json.loads(Path("data/collection.json").read_text())
    assert record["api"] == {"style": "plain", "examples": 1}
    for path in Path("data").iterdir():
        assert KEY.encode() not in path.read_bytes()
    # The same again, asked otherwise, goes on; in another style it is another collection.
    assert type_(f"{words} --api.concurrency 2").code == 0
    assert "holds another collection" in type_(f"{words} --api.style react").err


def test_a_refusal_is_one_line(type_: Type, server: ChatServer) -> None:
    server.faults = [Fault(401, b'{"error": {"message": "bad key"}}')] * 99
    outcome = type_(EVALUATE)
    assert outcome.code == 2
    assert outcome.lines[-1] == (f"error: {server.url}: status 401: bad key — check OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (EVALUATE, "no endpoint is named — set OPENAI_BASE_URL"),
        ("evaluate api:m", "api:m is not a run folder"),
        (f"{EVALUATE} --api.attempts 0", "api.attempts is 0 — expected 1 to 100"),
        (
            f"{EVALUATE} --constrain-actions",
            "constrain_actions is True — expected False for api:some/model",
        ),
    ],
)
def test_what_is_missing_is_named(
    type_: Type, monkeypatch: pytest.MonkeyPatch, words: str, line: str
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    outcome = type_(words)
    assert outcome.code == 2
    assert outcome.lines[-1].startswith(f"error: {line}")
