"""A Gymnasium environment that breaks its contract in one way, which an option names."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

LONG = "lines\n" * 400


class Faulty(gymnasium.Env[Any, Any]):
    """Three steps of a counter, with one fault."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, fault: str = "none", render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self._fault = fault
        self._raise("constructor", ValueError(f"no such map\n{LONG}"))
        self._raise("file", FileNotFoundError(2, "No such file or directory", "map.txt"))
        self.observation_space = spaces.Dict(
            {
                "count": spaces.Discrete(5),
                "wind": spaces.Box(-1.0, 1.0, (2,), np.float32),
                "note": spaces.Text(9),
                "pair": spaces.Tuple((spaces.Discrete(2), spaces.Discrete(2))),
            }
        )
        if fault != "no action space":
            self.action_space = spaces.Discrete(10**9 if fault == "many actions" else 2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self._raise("reset", ValueError("no level"))
        self._raise("reset says nothing", ValueError())
        self._count = 0
        seen = self._seen()
        return seen if self._fault == "old reset" else (seen, {})

    def step(self, action: Any) -> Any:
        self._count += 1
        self._raise("step", ValueError("no floor"))
        self._raise("silence", TimeoutError("the simulator is silent"))
        ended = self._count == 3
        if self._fault == "old step":
            return self._seen(), 0.0, ended, {}
        return self._seen(), None if self._fault == "no reward" else 0.0, ended, False, {}

    def render(self) -> Any:
        self._raise("render", OSError("no display"))
        image = np.zeros((40, 40, 3), np.uint8)
        if self._fault == "list of images":
            return [image]
        return image[:0] if self._fault == "empty image" else image

    def close(self) -> None:
        self._raise("close", OSError("closed already"))

    def _raise(self, fault: str, error: Exception) -> None:
        if self._fault == fault:
            raise error

    def _seen(self) -> Any:
        wind = np.zeros(2, np.float32)
        seen: dict[str, Any] = {"count": self._count, "wind": wind, "note": "calm", "pair": (0, 1)}
        match self._fault:
            case "no observation":
                return None
            case "no key":
                del seen["wind"]
            case "None inside":
                seen["count"] = None
            case "NaN":
                wind[1] = np.nan
            case "NaN later" if self._count == 2:
                wind[1] = np.nan
            case "another shape":
                seen["wind"] = np.zeros(3)
            case "no text":
                seen["note"] = 7
            case "no pair":
                seen["pair"] = (0,)
            case _:
                pass
        return seen


if "Faulty-v0" not in gymnasium.registry:
    gymnasium.register("Faulty-v0", entry_point=Faulty)
    gymnasium.register("NoClass-v0", entry_point=f"{__name__}:NoClass")
