"""Requests between two tokens: what they have come to, and that they can be forgotten."""

from collections.abc import Sequence

import pytest

from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.generation.decoding import DecodeLoop
from forethought.models.actor_critic import ActorCritic
from forethought.models.encoding import Encoder
from forethought.types import Completion
from tests.unit.models.conftest import MakePrompts

Tiny = tuple[ActorCritic, Encoder]


def requests(make_prompts: MakePrompts, count: int, **fields: object) -> list[GenerationRequest]:
    return [
        GenerationRequest(key, prompt, 100 + key, 12, 1.0, **fields)  # pyright: ignore[reportArgumentType]
        for key, prompt in enumerate(make_prompts(count))
    ]


def finish(loop: DecodeLoop) -> dict[int, GenerationResult]:
    results: dict[int, GenerationResult] = {}
    while loop.pending:
        results |= {result.key: result for result in loop.advance()}
    return results


def alone(tiny: Tiny, asked: Sequence[GenerationRequest]) -> dict[int, GenerationResult]:
    loop = DecodeLoop(*tiny, slots=8)
    for request in asked:
        loop.submit(request)
    return finish(loop)


def test_what_is_under_way_begins_what_is_answered(tiny: Tiny, make_prompts: MakePrompts) -> None:
    (request,) = requests(make_prompts, 1)
    whole = alone(tiny, [request])[0].completion
    loop = DecodeLoop(*tiny, slots=2)
    loop.submit(request)
    assert loop.under_way(0) is None
    seen: list[Completion] = []
    while not loop.step():
        found = loop.under_way(0)
        assert found is not None
        seen.append(found)
    assert loop.under_way(0) is None
    counts = [len(found.token_ids) for found in seen]
    assert counts == sorted(counts)
    assert counts[-1] >= 8
    for found, count in zip(seen, counts, strict=True):
        assert found.token_ids == whole.token_ids[:count]
        assert found.logprobs == whole.logprobs[:count]
        assert found.token_offsets == whole.token_offsets[:count]
        assert found.text == whole.text[: [*whole.token_offsets, len(whole.text)][count]]


def test_the_beginning_of_a_text_that_ends_it_is_held_back(
    tiny: Tiny, make_prompts: MakePrompts
) -> None:
    """Also where it turns out to be none."""
    free = alone(tiny, requests(make_prompts, 1))[0].completion
    last = free.text[free.token_offsets[4] - 1]  # A character that a token ends with.
    (request,) = requests(make_prompts, 1, stop=(f"{last}\0never",))
    loop = DecodeLoop(*tiny, slots=2)
    loop.submit(request)
    while not (results := loop.step()):
        found = loop.under_way(0)
        assert found is not None
        assert not found.text.endswith(last)
    assert results[0].completion.text == free.text


@pytest.mark.parametrize("gone", [0, 1, 3])
def test_one_that_is_forgotten_leaves_the_others_as_they_are(
    tiny: Tiny, make_prompts: MakePrompts, gone: int
) -> None:
    """Its row is taken by the last one, with the logits that it draws from next."""
    asked = requests(make_prompts, 4)
    expected = alone(tiny, asked)
    loop = DecodeLoop(*tiny, slots=4)
    for request in asked:
        loop.submit(request)
    results: dict[int, GenerationResult] = {}
    for _ in range(2):
        results |= {result.key: result for result in loop.step()}
    loop.cancel(gone)
    assert loop.pending == 3 - len(results)
    results |= finish(loop)
    assert set(results) == {0, 1, 2, 3} - {gone}
    for key, result in results.items():
        assert result.completion.token_ids == expected[key].completion.token_ids


def test_one_that_waits_is_forgotten_before_its_turn(tiny: Tiny, make_prompts: MakePrompts) -> None:
    asked = requests(make_prompts, 3)
    loop = DecodeLoop(*tiny, slots=1)
    for request in asked:
        loop.submit(request)
    loop.step()
    (begun,) = (request.key for request in asked if loop.under_way(request.key) is not None)
    waiting = next(key for key in range(3) if key != begun)
    loop.cancel(waiting)
    loop.cancel(99)  # Nobody's.
    assert set(finish(loop)) == {0, 1, 2} - {waiting}
