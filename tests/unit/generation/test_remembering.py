"""A greedy question is asked once; everything else as often as it is asked."""

from collections.abc import Sequence

import numpy as np

from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.generation.remembering import RememberingPolicy
from forethought.types import Completion, FinishReason, Image, Message, Prompt


class CountingPolicy:
    """Answers with how many requests it had before."""

    version = 7

    def __init__(self) -> None:
        self.asked = 0
        self.pending: list[GenerationResult] = []

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        return Prompt(tuple(messages), tuple(map(ord, messages[-1].text)))

    def submit(self, request: GenerationRequest) -> None:
        text = str(self.asked)
        completion = Completion((0,), (0.0,), (0,), text, FinishReason.STOP, request.temperature)
        self.pending.append(GenerationResult(request.key, completion, float(self.asked)))
        self.asked += 1

    def advance(self) -> list[GenerationResult]:
        """The first one alone, as a policy may."""
        return [self.pending.pop(0)] if self.pending else []


def ask(
    key: int,
    text: str,
    *,
    temperature: float = 0.0,
    tokens: int = 9,
    choices: tuple[str, ...] | None = None,
    image: Image | None = None,
) -> GenerationRequest:
    prompt = Prompt((Message("user", text, image),), tuple(map(ord, text)))
    return GenerationRequest(key, prompt, key, tokens, temperature, choices)


def answers(*requests: GenerationRequest) -> dict[int, str]:
    """By key, all submitted before the first is answered."""
    policy = RememberingPolicy(CountingPolicy())
    for request in requests:
        policy.submit(request)
    found: dict[int, str] = {}
    while results := policy.advance():
        found |= {result.key: result.completion.text for result in results}
    assert sorted(found) == sorted(request.key for request in requests)
    return found


def test_who_asks_the_same_while_it_is_answered_gets_that_answer() -> None:
    assert answers(ask(0, "a"), ask(1, "b"), ask(2, "a"), ask(3, "a")) == {
        0: "0",
        1: "1",
        2: "0",
        3: "0",
    }


def test_who_asks_the_same_later_gets_it_too_and_at_once() -> None:
    counting = CountingPolicy()
    policy = RememberingPolicy(counting)
    policy.submit(ask(0, "a"))
    (first,) = policy.advance()
    policy.submit(ask(1, "b"))
    policy.submit(ask(5, "a"))
    (again,) = policy.advance()
    assert (again.key, again.completion, again.value) == (5, first.completion, first.value)
    assert [result.key for result in policy.advance()] == [1]
    assert policy.advance() == []
    assert counting.asked == 2


def test_a_sample_is_drawn_each_time() -> None:
    requests = [ask(key, "a", temperature=0.5) for key in range(3)]
    assert answers(*requests) == {0: "0", 1: "1", 2: "2"}


def test_all_that_an_answer_depends_on_is_compared() -> None:
    black = np.zeros((2, 2, 3), dtype=np.uint8)
    found = answers(
        ask(0, "a"),
        ask(1, "a", tokens=8),
        ask(2, "a", choices=("x",)),
        ask(3, "a", choices=("y",)),
        ask(4, "a", image=black),
        ask(5, "a", image=black + 1),
        ask(6, "a", image=black.copy()),
    )
    assert found == {0: "0", 1: "1", 2: "2", 3: "3", 4: "4", 5: "5", 6: "4"}


def test_prompts_without_ids_are_told_apart_by_their_words() -> None:
    """Endpoints are sent messages, and tokenize them themselves."""
    a, b, again = (Prompt((Message("user", text),), ()) for text in ("a", "b", "a"))
    requests = [
        GenerationRequest(key, prompt, key, 9, 0.0) for key, prompt in enumerate((a, b, again))
    ]
    assert answers(*requests) == {0: "0", 1: "1", 2: "0"}


def test_it_stands_for_the_policy() -> None:
    policy = RememberingPolicy(CountingPolicy())
    assert policy.version == 7
    assert policy.prompt([Message("user", "a")]).token_ids == (97,)
