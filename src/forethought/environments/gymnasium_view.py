"""Any environment of ours as a `gymnasium.Env`, for Gymnasium's wrappers and learners.

`gymnasium.make("forethought.environments:forethought/NumberLine-v0")` needs no import of this
package; after `import forethought.environments`, or `import gymnasium, forethought`, the part
before the colon may be left out. (Gymnasium has no plugins any more since its version 1.0.)
"""

import string
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces

from forethought.environments.contract import Environment, WithRender
from forethought.environments.parts import require_option
from forethought.environments.registry import make_environment
from forethought.types import Image, Observation

UNSEEDED_BELOW = 1 << 61
"""A reset without a seed draws one below this, among those that training uses: held-out episodes
have seeds from here on (`rollouts/seeding.py`)."""

MAX_CHARACTERS = 20_000
"""Length of a text in Gymnasium's spaces; what is longer is cut."""

CHARACTERS = frozenset(string.printable)
"""Characters of texts in Gymnasium's spaces; any other is shown as a question mark."""

Shown = Image | str | dict[str, Any]


class GymnasiumView(gymnasium.Env[Shown, Any]):
    """Gymnasium's side of an environment.

    Observation: `Box` uint8 [H, W, 3], `Text`, or `Dict` of both, "image" and "text": what the
    environment shows at the start of an episode decides.

    Actions: `Discrete`, the index into `actions`; `Text` where actions are open text.

    Info: "goal" and, where the environment lists them, "admissible_actions"; after a step
    "success", too.

    Args:
        environment: an instance, or a name as `make_environment` takes it.
        render_mode: "rgb_array", "ansi" or None; "rgb_array" where there is an image.
        options: of the environment, where it is given by name.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self, environment: Environment | str, render_mode: str | None = None, **options: Any
    ) -> None:
        if isinstance(environment, str):
            environment = make_environment(environment, **options)
        self.environment = environment
        first = environment.reset(0)
        drawn = environment.render() if isinstance(environment, WithRender) else first.image
        modes = ["rgb_array"] if isinstance(drawn, np.ndarray) else []
        modes += ["ansi"] if isinstance(drawn, str) or first.text is not None else []
        require_option(
            render_mode is None or render_mode in modes,
            "render_mode",
            render_mode,
            " or ".join([*modes, "None"]),
        )
        self.metadata = {"render_modes": modes, "render_fps": 4}
        self.render_mode = render_mode
        self.observation_space = cast(spaces.Space[Shown], _space_of(first))
        self.action_space = (
            _text_space() if environment.actions is None else spaces.Discrete(self._count)
        )

    @property
    def _count(self) -> int:
        return len(self.environment.actions or ())

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Shown, dict[str, Any]]:
        """Starts the episode of the seed; without one, of a seed drawn from `np_random`."""
        super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(UNSEEDED_BELOW))
        observation = self.environment.reset(seed)
        return _shown(observation), _info(observation)

    def step(self, action: Any) -> tuple[Shown, float, bool, bool, dict[str, Any]]:
        """Executes the action with this index, or this text."""
        actions = self.environment.actions
        text = str(action) if actions is None else actions[int(action)]
        reward, terminated, truncated = self.environment.step(text)
        observation = self.environment.observation()
        info = {"success": self.environment.success(), **_info(observation)}
        return _shown(observation), reward, terminated, truncated, info

    def render(self) -> Any:
        """The image (rgb_array) or text (ansi) of the present state; None without a mode."""
        if self.render_mode is None:
            return None
        observation = self.environment.observation()
        drawn = [observation.image, observation.text]
        if isinstance(self.environment, WithRender):
            drawn.insert(0, self.environment.render())
        if self.render_mode == "ansi":
            return next(item for item in drawn if isinstance(item, str))
        return next(item.copy() for item in drawn if isinstance(item, np.ndarray))

    def close(self) -> None:
        """Closes the environment."""
        self.environment.close()


def _space_of(observation: Observation) -> spaces.Space[Any]:
    if observation.image is None:
        return _text_space()
    image = spaces.Box(0, 255, observation.image.shape, np.uint8)
    if observation.text is None:
        return image
    return spaces.Dict({"image": image, "text": _text_space()})


def _text_space() -> spaces.Text:
    return spaces.Text(MAX_CHARACTERS, min_length=0, charset=CHARACTERS)


def _shown(observation: Observation) -> Shown:
    """As the space has it. An image is copied: Gymnasium's users may write on it."""
    text = observation.text
    if text is not None:
        text = "".join(c if c in CHARACTERS else "?" for c in text[:MAX_CHARACTERS])
    if observation.image is None:
        return text or ""
    image = observation.image.copy()
    return image if text is None else {"image": image, "text": text}


def _info(observation: Observation) -> dict[str, Any]:
    info: dict[str, Any] = {"goal": observation.goal}
    if observation.admissible_actions is not None:
        info["admissible_actions"] = observation.admissible_actions
    return info
