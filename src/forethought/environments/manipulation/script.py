"""The scripted policy: over the object, down, close, up; and, to place it, over, down, open."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from forethought.environments.manipulation.scene import SHAPES
from forethought.environments.manipulation.simulator import HIGHEST, LOWEST, Simulator, Vector

MAX_SHIFT, MAX_ROTATION = 0.05, 0.3
"""Range of one action at its bin 0 or 255, meters and radians."""
GRID = 8
"""The script's shifts are multiples of an eighth of the largest."""
CARRYING = 0.625
"""The same of what it carries, as a share of the largest shift: a jerk would lose it."""
CARRY = 0.13
"""Height at which the gripper travels, meters."""
TOLERANCE, LOW = 0.009, 0.012
"""Meters, to the side and in height, at which the gripper has arrived."""
BESIDE = 0.078
"""From the middle of the placed object to that of the one that it is placed near, meters."""
PATIENCE = 5
"""Steps for which a policy that does not see whether it holds the object closes its gripper."""


class Goal(NamedTuple):
    """What the instruction asks for; objects by number."""

    wanted: int
    shape: str
    near: int | None
    """The object near which to place it; None: to lift it is all."""


class Decision(NamedTuple):
    """An action before it is put into bins, each number from -1 to 1, and why."""

    shift: Vector
    yaw: float
    closes: bool
    why: str
    gives_up: bool = False


@dataclass
class Script:
    """A function of the state alone where it sees all; with an error of aim it does not look again
    once it closes its gripper, and may lift nothing.

    Attributes:
        aim: error of where it sees the object, meters [2]; None: it sees everything.
        closing: for how many steps it has closed its gripper without seeing the outcome.
        has_released: whether it believes that it has placed the object.
    """

    aim: Vector | None = None
    closing: int = 0
    has_released: bool = False

    def decide(self, simulator: Simulator, goal: Goal) -> Decision:
        """What to do in the present state."""
        at = simulator.object_at(goal.wanted)
        if self.aim is not None and self.closing == 0:
            at[:2] += self.aim
        holds = simulator.holds(goal.wanted) if self.aim is None else self.closing >= PATIENCE
        if holds and not self.has_released:
            return self._carry(simulator, goal, at)
        if goal.near is not None and (self.has_released or _is_placed(simulator, goal)):
            is_up = simulator.grip[2] > CARRY - LOW
            return _go(simulator, _above(simulator.target), 0.0, False, "it is there: go up", is_up)
        return self._reach(simulator, goal, at)

    def _reach(self, simulator: Simulator, goal: Goal, at: Vector) -> Decision:
        """Over the object, down to it, and close."""
        yaw = turn_across(simulator, goal.wanted, goal.shape)
        grasp = np.array([at[0], at[1], max(LOWEST[2], min(at[2], 0.03))])
        aside = float(np.abs(simulator.grip[:2] - grasp[:2]).max())
        is_turned = abs(yaw) < 0.1
        height = simulator.grip[2] - grasp[2]
        if self.closing > 0 or (aside < TOLERANCE * 1.6 and height < LOW and is_turned):
            self.closing += self.aim is not None
            still = simulator.target if self.closing else grasp
            return _go(simulator, still, 0.0, True, "it is between the fingers: close")
        if aside < TOLERANCE and is_turned:
            return _go(simulator, grasp, yaw, False, "the gripper is above it: go down")
        is_low = height < 0.05 and aside > 0.03
        return _go(
            simulator, _above(grasp), yaw, False, _side(simulator.grip, grasp), False, is_low
        )

    def _carry(self, simulator: Simulator, goal: Goal, at: Vector) -> Decision:
        """Up; or over the place, down, and open."""
        grip, target = simulator.grip, simulator.target
        if goal.near is None:
            is_up = self.aim is not None and grip[2] > HIGHEST[2] - 0.06
            up = np.array([target[0], target[1], HIGHEST[2]])
            return _go(simulator, up, 0.0, True, "it is held: lift", is_up)
        place = _place_beside(simulator, goal)
        hang = grip - at  # The object's middle is not where the fingers meet.
        over = np.array([place[0] + hang[0], place[1] + hang[1], CARRY])
        aside = float(np.abs(grip[:2] - over[:2]).max())
        if aside > 0.02:
            is_low = grip[2] < CARRY - 0.04
            return _go(simulator, over, 0.0, True, "it is held: carry it", False, is_low)
        rest = SHAPES[goal.shape].rest
        if at[2] > rest + 0.012 and grip[2] > 0.02:
            down = np.array([target[0], target[1], max(LOWEST[2], rest + hang[2] + 0.002)])
            return _go(simulator, down, 0.0, True, "it is over the place: lower it")
        self.has_released = self.aim is not None
        return _go(simulator, target, 0.0, False, "it is down: open")


def _is_placed(simulator: Simulator, goal: Goal) -> bool:
    assert goal.near is not None
    apart = simulator.object_at(goal.wanted) - simulator.object_at(goal.near)
    return float(np.hypot(*apart[:2])) < BESIDE + 0.015


def _place_beside(simulator: Simulator, goal: Goal) -> Vector:
    """Where there is room beside the other object: ahead of the fingers or behind them, which
    open to the sides."""
    assert goal.near is not None
    near = simulator.object_at(goal.near)[:2]
    ahead = np.array([-np.sin(simulator.yaw), np.cos(simulator.yaw)]) * BESIDE
    third = simulator.object_at(3 - goal.wanted - goal.near)[:2]

    def room(place: Vector) -> float:
        inside = np.minimum(place - LOWEST[:2], HIGHEST[:2] - place).min()
        return min(float(inside), 0.04) + min(float(np.hypot(*(place - third))), 0.1)

    return max((near + ahead, near - ahead), key=room)


def turn_across(simulator: Simulator, number: int, shape: str) -> float:
    """By how much to turn the gripper, radians, so that its fingers close across the object."""
    fold = SHAPES[shape].fold
    if fold == 0:
        return -simulator.yaw
    alike = 2 * np.pi / fold
    across = simulator.object_yaw(number) + (np.pi / 2 if fold == 2 else 0.0)
    return float((across + alike / 2) % alike - alike / 2) - simulator.yaw


def _above(place: Vector) -> Vector:
    return np.array([place[0], place[1], CARRY])


def _side(grip: Vector, place: Vector) -> str:
    """Where the object is, as the camera sees it: from the front, so its left is x upwards."""
    words = []
    if abs(place[0] - grip[0]) > TOLERANCE:
        words.append("left" if place[0] > grip[0] else "right")
    if abs(place[1] - grip[1]) > TOLERANCE:
        words.append("nearer" if place[1] > grip[1] else "farther")
    return f"it is {' and '.join(words) or 'here'}: go above it"


def _go(
    simulator: Simulator,
    place: Vector,
    yaw: float,
    closes: bool,
    why: str,
    gives_up: bool = False,
    rises_first: bool = False,
) -> Decision:
    """Towards a place, at most as far as one action goes."""
    apart = place - simulator.target
    if rises_first:
        apart = np.array([0.0, 0.0, CARRY - simulator.target[2]])
    fastest = CARRYING if closes else 1.0
    shift = np.clip(np.round(apart / MAX_SHIFT * GRID) / GRID, -fastest, fastest)
    turn = float(np.clip(np.round(yaw / MAX_ROTATION * GRID) / GRID, -1.0, 1.0))
    return Decision(shift, turn, closes, why, gives_up)
