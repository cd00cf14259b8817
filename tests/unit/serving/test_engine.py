"""The thread that answers: who is answered with whom, and what ends it."""

from collections.abc import Generator

import pytest

from forethought.chat.protocol import ChatAnswer, ChatRequest, Choice
from forethought.errors import PolicyError
from forethought.serving.engine import Engine, StoppedError
from forethought.types import FinishReason, Message
from tests.unit.serving.policy import EchoPolicy, at_most_ten_tokens

WAIT_S = 10.0


def ask_for(text: str, *, seed: int | None = None, temperature: float | None = None) -> ChatRequest:
    return ChatRequest("m", (Message("user", text),), seed=seed, temperature=temperature)


@pytest.fixture
def policy() -> EchoPolicy:
    return EchoPolicy()


@pytest.fixture
def engine(policy: EchoPolicy) -> Generator[Engine]:
    running = Engine(policy, at_most_ten_tokens, seed=0)
    yield running
    policy.let_go.set()
    running.stop()


def test_an_answer_with_its_tokens(engine: Engine) -> None:
    answer = engine.ask(ask_for("abc"), max_new_tokens=2).result(WAIT_S)
    choice = Choice("ab", FinishReason.STOP, (1, 1), (0.0, 0.0), (), (0, 1))
    assert answer == ChatAnswer((choice,), 3, 2, (1, 1, 1), "m")


def test_what_comes_meanwhile_is_answered_together(engine: Engine, policy: EchoPolicy) -> None:
    policy.let_go.clear()
    first = engine.ask(ask_for("0"), max_new_tokens=1)
    while not policy.requests:  # The engine is at the first one.
        pass
    others = [engine.ask(ask_for(str(n)), max_new_tokens=1) for n in range(1, 6)]
    policy.let_go.set()
    assert [answer.result(WAIT_S).text for answer in (first, *others)] == list("012345")
    assert policy.sizes[0] == 1
    assert sum(policy.sizes) == 6
    assert max(policy.sizes) >= 4  # The last may have come a moment late.


def test_seed_and_temperature_go_along(engine: Engine, policy: EchoPolicy) -> None:
    for request in (ask_for("a", seed=7, temperature=0.5), ask_for("b"), ask_for("c")):
        engine.ask(request, max_new_tokens=1).result(WAIT_S)
    asked = policy.requests
    assert (asked[0].seed, asked[0].temperature) == (7, 0.5)
    assert asked[1].temperature == asked[2].temperature == 1.0
    assert asked[1].seed != asked[2].seed
    engine.ask(ask_for("d", seed=-1), max_new_tokens=1).result(WAIT_S)
    assert policy.requests[-1].seed == 2**64 - 1


def test_a_request_that_cannot_be_answered_disturbs_no_other(engine: Engine) -> None:
    too_long = engine.ask(ask_for("abcdefgh"), max_new_tokens=3)
    bug = engine.ask(ask_for("a bug"), max_new_tokens=3)
    good = engine.ask(ask_for("abc"), max_new_tokens=3)
    with pytest.raises(PolicyError, match="more than 10 tokens"):
        too_long.result(WAIT_S)
    with pytest.raises(ZeroDivisionError):
        bug.result(WAIT_S)
    assert good.result(WAIT_S).text == "abc"


def test_one_that_was_given_up_is_never_begun(engine: Engine, policy: EchoPolicy) -> None:
    policy.let_go.clear()
    engine.ask(ask_for("0"), max_new_tokens=1)
    while not policy.requests:
        pass
    assert engine.ask(ask_for("1"), max_new_tokens=1).cancel()
    policy.let_go.set()
    assert engine.ask(ask_for("2"), max_new_tokens=1).result(WAIT_S).text == "2"
    assert [request.prompt.messages[0].text for request in policy.requests] == ["0", "2"]


def test_a_failing_policy_ends_it_and_is_told(policy: EchoPolicy) -> None:
    policy.failure = MemoryError("no room")
    engine = Engine(policy, at_most_ten_tokens, seed=0)
    answer = engine.ask(ask_for("a"), max_new_tokens=1)
    with pytest.raises(StoppedError):
        answer.result(WAIT_S)
    with pytest.raises(MemoryError, match="no room"):
        engine.wait()
    with pytest.raises(StoppedError):
        engine.ask(ask_for("b"), max_new_tokens=1).result(WAIT_S)


def test_nobody_waits_for_one_that_was_stopped(policy: EchoPolicy) -> None:
    engine = Engine(policy, at_most_ten_tokens, seed=0)
    engine.stop()
    engine.wait()
    with pytest.raises(StoppedError):
        engine.ask(ask_for("a"), max_new_tokens=1).result(WAIT_S)
