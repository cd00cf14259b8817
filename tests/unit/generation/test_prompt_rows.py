"""Which rows prompts get, whose beginnings they take over, and who gives way."""

from collections.abc import Sequence

import numpy as np
import torch

from forethought.generation.prompt_rows import Place, Prefilled, PromptRows
from forethought.types import Message, Prompt

TASK = tuple(range(100, 110))
"""Instructions that all prompts of one task begin with."""


def prompt(*ids: int) -> Prompt:
    return Prompt((Message("user", "text"),), ids)


def place(rows: PromptRows, *prompts: Prompt) -> list[Place]:
    """Places prompts as the reader does, and notes that they were read."""
    places = rows.place({one.key: one for one in prompts})
    for one in places:
        prefilled = Prefilled(one.row, torch.zeros(3), None, len(one.prompt.token_ids), 0)
        rows.add(one.prompt.key, prefilled)
    return places


def found(places: Sequence[Place]) -> list[tuple[int, int, int]]:
    return [(one.row, one.source, one.start) for one in places]


def test_a_known_prompt_needs_no_place() -> None:
    rows = PromptRows(range(4, 6))
    assert found(place(rows, prompt(1, 2, 3))) == [(4, 4, 0)]
    assert place(rows, prompt(1, 2, 3)) == []
    assert rows[prompt(1, 2, 3).key].row == 4


def test_the_next_turn_takes_over_the_row_of_the_last() -> None:
    rows = PromptRows(range(4, 6))
    first = prompt(1, 2, 3, 4)
    place(rows, first)
    assert rows.extend(first, (5, 6)) == 4
    # 1 … 6 are there; 7 is new, and 8 is computed in any case.
    assert found(place(rows, prompt(1, 2, 3, 4, 5, 6, 7, 8))) == [(4, 4, 6)]
    assert found(place(rows, first)) == [(5, 4, 3)]  # what it was is gone; its tokens are not


def test_the_last_token_is_always_computed() -> None:
    rows = PromptRows(range(4, 6))
    place(rows, prompt(1, 2, 3, 4, 5, 6))
    assert found(place(rows, prompt(1, 2, 3, 4))) == [(5, 4, 3)]


def test_equal_instructions_are_copied_and_stay() -> None:
    rows = PromptRows(range(4, 7))
    place(rows, prompt(*TASK, 1, 2))
    assert found(place(rows, prompt(*TASK, 3, 4, 5))) == [(5, 4, 10)]
    assert place(rows, prompt(*TASK, 1, 2)) == []


def test_a_short_common_beginning_is_not_worth_a_copy() -> None:
    rows = PromptRows(range(4, 7))
    place(rows, prompt(1, 2, 3, 4, 5, 6, 7, 8))
    assert found(place(rows, prompt(1, 2, 3, 14, 15, 16, 17, 18))) == [(5, 5, 0)]


def test_of_a_group_that_continues_one_prompt_the_first_takes_its_row() -> None:
    rows = PromptRows(range(4, 7))
    start = prompt(1, 2, 3, 4)
    place(rows, start)
    assert rows.extend(start, (5,)) == 4
    assert rows.extend(start, (6, 7)) == 5  # the row is extended: another one, which is free
    assert rows.extend(start, (8,)) == 6
    assert rows.extend(start, (9,)) is None  # none is left, and no prompt is given up for it
    nexts = [prompt(1, 2, 3, 4, 6, 7, 0), prompt(1, 2, 3, 4, 5, 0), prompt(1, 2, 3, 4, 6, 7, 1)]
    places = place(rows, *nexts)
    assert [one.start for one in places] == [6, 5, 6]
    assert [one.row for one in places][:2] == [5, 4]
    assert len({one.row for one in places}) == 3


def test_the_least_recently_used_row_gives_way() -> None:
    rows = PromptRows(range(2))
    old, other, new = prompt(1, 2), prompt(3, 4), prompt(5, 6)
    place(rows, old)
    place(rows, other)
    place(rows, old)
    assert [one.row for one in place(rows, new)] == [rows[new.key].row] == [1]
    assert place(rows, old) == []


def test_no_prompt_that_is_asked_for_gives_way() -> None:
    rows = PromptRows(range(3))
    old = prompt(1, 2, 3, 4)
    place(rows, old, prompt(5, 6), prompt(7, 8))
    longer = prompt(1, 2, 3, 4, 5)
    places = place(rows, old, longer, prompt(9, 10))
    assert rows[old.key].row not in {one.row for one in places}
    assert (places[0].source, places[0].start) == (rows[old.key].row, 4)


def test_images_are_not_known_by_their_ids() -> None:
    rows = PromptRows(range(4))
    pixels = np.zeros((2, 2, 3), dtype=np.uint8)
    seen = Prompt((Message("user", "text", pixels),), (1, 2, 3, 4))
    other = Prompt((Message("user", "text", pixels + 1),), (1, 2, 3, 4))
    place(rows, seen)
    assert rows.extend(seen, (5, 6)) is None
    assert [one.start for one in place(rows, other, prompt(1, 2, 3, 4))] == [0, 0]


def test_a_row_forgets_what_another_prompt_overwrote() -> None:
    rows = PromptRows(range(1))
    place(rows, prompt(1, 2, 3, 4, 5, 6))
    place(rows, prompt(9, 8))
    assert found(place(rows, prompt(1, 2, 3, 4, 5, 6))) == [(0, 0, 0)]
