"""How far a run has come is written, read, and dealt to as many processes as there are now."""

import pytest

from forethought.rollouts.slot import Cursor
from forethought.runs.metrics import MetricsPosition
from forethought.training.state import Progress

SLOTS = [Cursor(episode, ("+", "-")[: episode % 3], float(episode)) for episode in range(8)]


def progress(*parts: list[Cursor]) -> Progress:
    return Progress(4, 12, MetricsPosition(100, 90, 4), tuple(map(tuple, parts)))


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([SLOTS], id="one process"),
        pytest.param([SLOTS[:4], SLOTS[4:]], id="two"),
        pytest.param([SLOTS[:2], SLOTS[2:4], SLOTS[4:6], SLOTS[6:]], id="four"),
    ],
)
@pytest.mark.parametrize("processes", [1, 2, 4, 8])
def test_slots_keep_their_numbers(parts: list[list[Cursor]], processes: int) -> None:
    dealt = progress(*parts).among(processes).cursors
    assert [len(part) for part in dealt] == [8 // processes] * processes
    assert [cursor for part in dealt for cursor in part] == SLOTS


def test_a_run_without_slots_stays_so() -> None:
    assert progress().among(2).cursors == ((), ())
