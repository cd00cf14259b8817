"""A grid of two roads that cross, and data in which nobody takes the turn that pays.

          north
            .
    west . . + . pit
            .
           goal

Who starts in the west walks on into the pit, who starts in the north walks on to the goal; three
of four start in the west. So at the crossing most go right, no episode from the west is worth
anything, and yet its first half and the second half of one from the north make one that is.
"""

from collections.abc import Iterator
from dataclasses import replace

from forethought.environments.contract import Ceiling, ExpertAction, Transition
from forethought.prompts.responses import write_response
from forethought.rollouts.scripted import play
from forethought.rollouts.task import Task
from forethought.types import Metric, Observation, Trajectory

Place = tuple[int, int]
"""Column and row."""
WEST, NORTH, CROSSING, PIT, GOAL = (0, 2), (2, 0), (2, 2), (4, 2), (2, 4)
ROADS = {*((column, 2) for column in range(5)), *((2, row) for row in range(5))}
MOVES: dict[str, Place] = {"right": (1, 0), "left": (-1, 0), "down": (0, 1), "up": (0, -1)}
LIMIT = 8


class Crossing:
    """1 for the goal, 0 for all else; the pit ends it, and eight steps cut it."""

    actions = tuple(MOVES)
    ceiling = Ceiling(1.0, "exact: four steps lead to the goal from either start")

    def __init__(self, start: str = "either") -> None:
        self._start = start
        self._at, self._steps = WEST, 0

    def reset(self, seed: int) -> Observation:
        is_north = self._start == "either" and seed % 4 == 0
        self._at, self._steps = (NORTH if is_north else WEST), 0
        return self.observation()

    def observation(self) -> Observation:
        column, row = self._at
        text = f"column {column} row {row}"
        return Observation(text, None, None, f"{text} {self._steps}", "Find the goal.", "Crossing")

    def step(self, action: str) -> Transition:
        if not self.legal_actions():
            raise RuntimeError("the episode is over")
        column, row = MOVES.get(action, (0, 0))
        there = (self._at[0] + column, self._at[1] + row)
        self._at = there if there in ROADS else self._at
        self._steps += 1
        ended = self._at in (PIT, GOAL)
        return Transition(float(self.success()), ended, not ended and self._steps >= LIMIT)

    def legal_actions(self) -> tuple[str, ...]:
        return () if self._at in (PIT, GOAL) or self._steps >= LIMIT else self.actions

    def expert(self) -> ExpertAction:
        return ExpertAction("right" if self._at[0] < CROSSING[0] else "down", ())

    def success(self) -> bool:
        return self._at == GOAL

    def metrics(self) -> tuple[Metric, ...]:
        return ()

    def close(self) -> None: ...


def straight_on(task: Task, seeds: range) -> Iterator[Trajectory]:
    """The data: everyone walks on as they began."""
    texts = [write_response(ExpertAction(move, ()), "action_only") for move in ("down", "right")]

    def on_right(*_: object) -> str:
        return texts[1]

    def on_down(*_: object) -> str:
        return texts[0]

    for seed in seeds:
        answer = on_down if seed % 4 == 0 else on_right
        yield from play(task.id, Crossing(), task.prompter, answer, [seed])


def cut_after(trajectory: Trajectory, steps: int) -> Trajectory:
    """The first steps alone, as a collection that was stopped leaves them."""
    last = replace(trajectory.steps[steps - 1], terminated=False, truncated=False)
    return replace(trajectory, steps=(*trajectory.steps[: steps - 1], last), success=False)
