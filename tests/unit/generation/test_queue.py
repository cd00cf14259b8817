"""Who is answered next."""

from forethought.generation.contract import GenerationRequest
from forethought.generation.decoding import RequestQueue, room_for
from forethought.types import Prompt


def request(key: int, prompt_tokens: int, new_tokens: int) -> GenerationRequest:
    return GenerationRequest(key, Prompt((), (7,) * prompt_tokens), key, new_tokens, 1.0)


def filled(*room: tuple[int, int]) -> RequestQueue:
    queue = RequestQueue()
    for key, (prompt_tokens, new_tokens) in enumerate(room):
        queue.put(request(key, prompt_tokens, new_tokens))
    return queue


def keys(requests: list[GenerationRequest]) -> list[int]:
    return [request.key for request in requests]


def test_room_is_that_of_prompt_and_longest_answer() -> None:
    assert room_for(request(0, 5, 3)) == 8


def test_those_that_need_most_room_go_first() -> None:
    queue = filled((5, 1), (2, 9), (7, 2), (1, 0))
    assert keys(queue.take(3)) == [1, 2, 0]
    assert len(queue) == 1


def test_nobody_is_overtaken_by_a_later_round() -> None:
    queue = filled((5, 1), (4, 1), (3, 1))
    assert keys(queue.take(1)) == [0]
    queue.put(request(9, 100, 1))
    assert keys(queue.take(3)) == [1, 2, 9]


def test_no_more_than_there_are() -> None:
    queue = filled((1, 1))
    assert keys(queue.take(5)) == [0]
    assert queue.take(5) == []
    assert len(queue) == 0
