"""A counter that does, at the action named after it, what no environment should."""

import contextlib
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from forethought.environments.contract import Ceiling, ExpertAction, Transition
from forethought.types import Metric, Observation

GOOD = np.zeros((8, 8, 3), dtype=np.uint8)


def _exit() -> None:
    raise SystemExit(0)


def _interrupt() -> None:
    raise KeyboardInterrupt


def _hang() -> None:
    while True:
        time.sleep(0.01)


def _hang_and_swallow() -> None:
    for _ in range(2):
        with contextlib.suppress(BaseException):
            _hang()
    _hang()


DEEDS: dict[str, Callable[[], None]] = {
    "exit": _exit,
    "interrupt": _interrupt,
    "hang": _hang,
    "swallow": _hang_and_swallow,
}
REWARDS: dict[str, object] = {
    "nan": float("nan"),
    "inf": float("inf"),
    "1e308": 1e308,
    "null": None,
    "text": "1.0",
    "array": np.ones(1),
}
IMAGES: dict[str, object] = {
    "four channels": np.zeros((8, 8, 4), dtype=np.uint8),
    "gray": np.zeros((8, 8), dtype=np.uint8),
    "float": np.zeros((8, 8, 3)),
    "empty": np.zeros((0, 8, 3), dtype=np.uint8),
    "huge": np.broadcast_to(np.zeros(3, dtype=np.uint8), (20_000, 20_000, 3)),
    "no array": "pixels",
}
HOSTILE = (*REWARDS, *IMAGES, "both ends", "half surrogate", "numpy end", "nan measure")
"""What is told by the value that comes back."""


class HostileEnvironment:
    """ "add" counts, "end" ends; every other action is one way to break the contract."""

    actions: tuple[str, ...] = ("add", "end", *DEEDS, *HOSTILE)
    ceiling = Ceiling(1.0, "exact: by counting")
    trouble = "nan"
    """What the expert does at step 1 of an episode whose seed is odd."""

    def __init__(self, trouble: str = "nan") -> None:
        self.trouble = trouble
        self._seed = self._count = 0
        self._last = "add"

    def reset(self, seed: int) -> Observation:
        self._seed, self._count, self._last = seed, 0, "add"
        return self.observation()

    def observation(self) -> Observation:
        text = "\ud800" if self._last == "half surrogate" else f"{self._count}"
        image = cast(Any, IMAGES.get(self._last, GOOD))
        return Observation(text, image, None, f"{self._seed} {self._count}", "Count.", "Count")

    def step(self, action: str) -> Transition:
        self._last = action
        self._count += 1
        if action in DEEDS:
            DEEDS[action]()
        ended: Any = action == "end" or self._count >= 8
        if action == "both ends":
            return Transition(0.0, True, True)
        if action == "numpy end":
            ended = np.bool_(True)
        return Transition(cast(Any, REWARDS.get(action, 1.0)), ended, False)

    def legal_actions(self) -> tuple[str, ...]:
        return self.actions

    def expert(self) -> ExpertAction:
        if self._count == 1 and self._seed % 2:
            return ExpertAction(self.trouble, ())
        return ExpertAction("add" if self._count < 3 else "end", ())

    def success(self) -> bool:
        return True

    def metrics(self) -> tuple[Metric, ...]:
        return (Metric("count", float("nan") if self._last == "nan measure" else 1.0),)

    def close(self) -> None:
        pass
