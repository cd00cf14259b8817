"""`forethought play ENV`."""

import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from forethought.cli.flags import Operand
from forethought.configs.parts import EnvironmentConfig, PromptConfig, require
from forethought.environments.chess.notation import find_diagram
from forethought.environments.contract import Environment, Transition, WithExpert
from forethought.errors import visible
from forethought.rollouts.task import Task, open_task
from forethought.types import Image, Observation

_MAX_COLUMNS = 100
"""An image wider than this is no clearer."""
_LISTED = 60
"""Actions beyond this are not listed."""


@dataclass(frozen=True)
class Play:
    """What is played, and how it is shown."""

    environment: Annotated[str, Operand("ENV")]
    """Name of an environment (`forethought envs` lists them), or `package.module:Class`."""

    seed: int = 0
    """Seed of the first episode; the next ones count on from it."""

    image: Literal["half-blocks", "png", "none"] | None = None
    """Images as colored characters, as a file whose path is printed, or not at all. By
    default colored characters in a terminal, files elsewhere."""

    options: tuple[str, ...] = ()
    """Options of the environment as `name=value`, e.g. `rules=reference`."""

    image_size: int | None = None
    """Pixels on a side; by default the environment's own size."""

    def __post_init__(self) -> None:
        require(self.seed >= 0, "seed", self.seed, "0 or more")


def play(settings: Play) -> None:
    """Play an environment yourself, in this terminal.

    Type an action, or its number. `?` asks the expert, `q` leaves.

    Examples:
      forethought play NumberLine
      forethought play Points24 --seed 7 --image png
      forethought play Blackjack --options rules=reference
    """
    config = EnvironmentConfig(
        id=settings.environment, options=settings.options, image_size=settings.image_size
    )
    task = open_task(config, PromptConfig(), default_image_size=None)
    show = _Screen(settings.image or ("half-blocks" if sys.stdout.isatty() else "png"))
    environment = task.factory()
    try:
        seed = settings.seed
        while _play_episode(task, environment, seed, show) and _ask("another? [y/n] ") in (
            "y",
            "yes",
        ):
            seed += 1
    finally:
        environment.close()


class _Screen:
    """Shows observations."""

    def __init__(self, kind: Literal["half-blocks", "png", "none"]) -> None:
        self._kind = kind
        self._folder: Path | None = None
        self._shown = 0

    def observation(self, observation: Observation) -> None:
        if observation.image is not None:
            self._image(observation.image)
        diagram = find_diagram(observation.state_key)
        if diagram is not None:
            _say(diagram)
        if observation.text:
            _say(observation.text)

    def _image(self, image: Image) -> None:
        if self._kind == "half-blocks":
            columns = min(shutil.get_terminal_size().columns, _MAX_COLUMNS)
            print("\n".join(half_blocks(image, columns)))
        if self._kind == "png":
            print(f"image: {self._write(image)}")

    def _write(self, image: Image) -> Path:
        import PIL.Image

        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="forethought-play-"))
        self._shown += 1
        path = self._folder / f"{self._shown:03d}.png"
        PIL.Image.fromarray(image).save(path)
        return path


def _play_episode(task: Task, environment: Environment, seed: int, show: _Screen) -> bool:
    """Plays until the end, or until the player leaves; returns whether the end was reached."""
    observation = environment.reset(seed)
    _say(f"\n{task.id}, episode {seed}: {observation.goal}")
    total, steps = 0.0, 0
    while True:
        show.observation(observation)
        action = _choose(environment, task)
        if action is None:
            return False
        transition = environment.step(action)
        observation = environment.observation()
        total, steps = total + transition.reward, steps + 1
        print(f"reward {transition.reward:g}, return {total:g}")
        if transition.terminated or transition.truncated:
            show.observation(observation)
            _say(_ending(environment, transition, total, steps))
            return True


def _ending(environment: Environment, transition: Transition, total: float, steps: int) -> str:
    how = "the episode has ended" if transition.terminated else "the episode was cut at its limit"
    success = "success" if environment.success() else "no success"
    measures = "".join(f", {name} {value:g}" for name, value in environment.metrics())
    return f"{how} after {steps} steps: {success}, return {total:g}{measures}"


def _choose(environment: Environment, task: Task) -> str | None:
    """The action that the player wants; None where they leave."""
    actions = environment.legal_actions()
    is_numbered = not any(action.isdigit() for action in task.actions or actions)
    _say(_menu(actions, is_numbered))
    while True:
        typed = _ask("> ")
        if typed is None or typed == "q":
            return None
        if typed == "?":
            _tell_advice(environment)
        elif is_numbered and typed.isdigit() and 1 <= int(typed) <= len(actions):
            return actions[int(typed) - 1]
        elif typed in (task.actions or actions) or (typed and task.actions is None):
            return typed
        else:
            _say(f"{typed!r} is no action here — {_menu(actions, is_numbered)}")


def _menu(actions: Sequence[str], is_numbered: bool) -> str:
    listed = [
        f"{number} {action}" if is_numbered else action
        for number, action in enumerate(actions[:_LISTED], start=1)
    ]
    more = f", … ({len(actions)} in all)" if len(actions) > _LISTED else ""
    separator = "   " if is_numbered else " "
    return f"actions: {separator.join(listed)}{more}   (? expert, q quit)"


def _tell_advice(environment: Environment) -> None:
    if not isinstance(environment, WithExpert):
        _say("  this environment has no expert")
        return
    expert_action = environment.expert()
    for name, value in expert_action.fields:
        _say(f"  {name}: {value}")
    _say(f"  action: {expert_action.action}")


def _say(text: str) -> None:
    """Prints text of the environment, which may be hostile."""
    print(visible(text))


def _ask(question: str) -> str | None:
    """A line that the player types; None at the end of the input."""
    try:
        return input(question).strip()
    except EOFError:
        print()
        return None


_UPPER_HALF = "▀"
_RESET = "\x1b[0m"


def half_blocks(image: Image, columns: int) -> list[str]:
    """Lines of colored half blocks (24-bit ANSI): the foreground is the upper pixel, the
    background the lower one, so that a character is about as wide as it is high.

    Args:
        columns: width in characters; smaller images keep their own width.
    """
    width = min(columns, image.shape[1])
    height = max(1, round(image.shape[0] * width / image.shape[1]))
    pixels = shrink(image, height + height % 2, width)
    return [_line(upper, lower) for upper, lower in zip(pixels[::2], pixels[1::2], strict=True)]


def shrink(image: Image, height: int, width: int) -> Image:
    """Every new pixel is the mean of the old ones that it covers."""
    rows = _shares(image.shape[0], height)
    columns = _shares(image.shape[1], width)
    mean = np.einsum("ih,hwc,jw->ijc", rows, image.astype(np.float64), columns, optimize=True)
    return np.rint(mean).astype(np.uint8)


def _shares(old: int, new: int) -> NDArray[np.float64]:
    """How much each old pixel counts in each new one [new, old]; every row adds up to 1."""
    edges = np.linspace(0, old, new + 1)
    starts, stops = edges[:-1, None], edges[1:, None]
    pixels = np.arange(old)
    overlap = np.minimum(stops, pixels + 1) - np.maximum(starts, pixels)
    shares = np.clip(overlap, 0, None)
    return shares / shares.sum(axis=1, keepdims=True)


def _line(upper: Image, lower: Image) -> str:
    parts: list[str] = []
    before: tuple[int, ...] = ()
    for above, below in zip(upper.tolist(), lower.tolist(), strict=True):
        colors = (*above, *below)
        if colors != before:  # Most neighbors are equal: terminals are slow readers.
            red, green, blue, red_below, green_below, blue_below = colors
            parts.append(
                f"\x1b[38;2;{red};{green};{blue};48;2;{red_below};{green_below};{blue_below}m"
            )
            before = colors
        parts.append(_UPPER_HALF)
    return "".join([*parts, _RESET])
