"""Gymnasium environments of somebody else's, some of them broken."""

import random
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

Seen = dict[str, Any]


class Corridor(gymnasium.Env[Seen, Any]):
    """Five cells; the right end pays 1. With a mission, and any space of actions."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(
        self, space: str = "discrete", pixels: str = "good", render_mode: str | None = None
    ) -> None:
        self.render_mode = render_mode
        self._pixels = pixels
        self.observation_space = spaces.Dict(
            {
                "cell": spaces.Discrete(5),
                "wind": spaces.Box(-1.0, 1.0, (2,), np.float32),
                "mission": spaces.Text(30),
            }
        )
        self.action_space: spaces.Space[Any] = {
            "discrete": spaces.Discrete(2, start=1),
            "text": spaces.Text(5, charset="leftrigh"),
            "box": spaces.Box(-1.0, 1.0, (1,), np.float32),
            "boxes": spaces.Box(-1.0, 1.0, (3,), np.float32),
            "multi": spaces.MultiDiscrete([2, 2]),
        }[space]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        super().reset(seed=seed)
        self._cell = int(self.np_random.integers(3))
        self._drawn = 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        goes_right = action in (2, "right") or (isinstance(action, np.ndarray) and action[0] > 0)
        self._cell = min(max(self._cell + (1 if goes_right else -1), 0), 4)
        at_end = self._cell == 4
        return self._seen(), float(at_end), at_end, False, {}

    def render(self) -> Any:
        self._drawn += 1
        if self._pixels == "none":
            return None
        if self._pixels == "floats":
            return np.zeros((8, 8, 3))
        side = 8 + (self._drawn if self._pixels == "growing" else 0)
        image = np.zeros((side, 16, 3), np.uint8)
        image[:, : 3 * self._cell + 1] = 255
        return image

    def _seen(self) -> Seen:
        wind = np.array([0.25, -0.5], np.float32)
        return {"cell": self._cell, "wind": wind, "mission": "go right"}


class Forgetful(Corridor):
    """Deals by the clock of the global generator, whatever the seed is."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        super().reset(seed=seed)
        self._cell = random.randint(0, 3)
        return self._seen(), {}


class Screen(Corridor):
    """Observes pixels, for which there are no words, and takes many actions."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode=render_mode)
        self.observation_space: Any = spaces.Box(0, 255, (9, 9, 3), np.uint8)
        self.action_space = spaces.Discrete(25)

    def _seen(self) -> Any:
        return np.zeros((9, 9, 3), np.uint8)


class Away(Corridor):
    """Cannot be reset."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        raise RuntimeError("away")


class Leaver(Corridor):
    """Would end the process."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        raise SystemExit


for kind in (Corridor, Forgetful, Screen, Away, Leaver):
    if f"{kind.__name__}-v0" not in gymnasium.registry:
        gymnasium.register(f"{kind.__name__}-v0", entry_point=kind, max_episode_steps=12)
