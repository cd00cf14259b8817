"""ALFWorld in AI2-THOR's own frames, where that is installed.

The package's `AlfredThorEnv` needs a Unity build, which it downloads when it first runs, and
an X display. Everything here goes through its surface (`ThorSurface`), so that any object
which has that can stand in for it.

    forethought play examples.alfworld_thor.thor:ThorEnvironment
"""

import random
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from PIL import Image as Pillow

from forethought.configs.parts import ResponseFormat
from forethought.environments.alfworld.expert import advise
from forethought.environments.alfworld.games import TRAJECTORY_FILE, find_games, read_game
from forethought.environments.alfworld.generator import LIMIT_STEPS
from forethought.environments.alfworld.notes import NOTHING_HAPPENS, Exchange, Notes
from forethought.environments.alfworld.package import SPLITS, Split, data_folder, import_alfworld
from forethought.environments.alfworld.progress import CONDITIONS, Reward, RewardParts
from forethought.environments.alfworld.prompt import ALFWorldPrompter, alfworld_summary
from forethought.environments.alfworld.thoughts import alfworld_facts
from forethought.environments.contract import (
    Ceiling,
    ExpertAction,
    Prompter,
    Summarize,
    Transition,
    Wording,
)
from forethought.environments.parts import Episode, is_whole_number, require_option
from forethought.errors import MissingDependencyError
from forethought.types import Image, Metric, Observation, ThoughtFacts

FRAME_SIZE = 300


class ThorSurface(Protocol):
    """What is used of the package's Thor environment, in a batch of one."""

    json_file_list: list[str]
    """Trajectory files from which a task is drawn."""

    def reset(self) -> tuple[list[str], dict[str, Any]]:
        """Texts, and "admissible_commands", "won", "goal_condition_success_rate"."""
        ...

    def step(self, actions: list[str]) -> tuple[list[str], None, list[bool], dict[str, Any]]: ...

    def get_frames(self) -> Any:
        """uint8 [1, 300, 300, 3], in the order blue, green, red."""
        ...

    def close(self) -> None: ...


class ThorEnvironment:
    """The same tasks and commands as `ALFWorld`, seen through the simulator's camera.

    Description: see `ALFWorld`; what differs stands below.

    Observation: the simulator's frame, uint8 [image_size, image_size, 3], and the
    controller's text.

    Actions, rewards, end, success: as `ALFWorld`; progress is the simulator's own.

    Start: the game that the seed stands for: seed modulo the number of games.

    Ceiling: 100 %: official games are kept only where they can be solved.

    Arguments:
        split: train, valid_seen or valid_unseen.
        games: folder of the official games; by default ALFWORLD_DATA.
        limit_steps: 1 to 1000.
        reward: paper or reference.
        image_size: side of the image, 48 to 1024 pixels.
        surface: the package's environment or one like it; by default it is started.

    Version history:
        v0: first version.
    """

    def __init__(
        self,
        split: Split = "train",
        games: str | None = None,
        limit_steps: int = LIMIT_STEPS,
        reward: Reward = "paper",
        image_size: int = FRAME_SIZE,
        surface: ThorSurface | None = None,
    ) -> None:
        require_option(split in SPLITS, "split", split, ", ".join(SPLITS))
        require_option(
            is_whole_number(limit_steps, 1, 1000), "limit_steps", limit_steps, "1 to 1000"
        )
        require_option(reward in ("paper", "reference"), "reward", reward, "paper or reference")
        allowed = is_whole_number(image_size, 48, 1024)
        require_option(allowed, "image_size", image_size, "a whole number from 48 to 1024")
        root = games or data_folder()
        require_option(root is not None, "games", games, "a folder of games, or set ALFWORLD_DATA")
        self._games = find_games(Path(str(root)), split)
        self._surface = surface if surface is not None else start_thor(Path(str(root)))
        self._rule: Reward = reward
        self._size = image_size
        self._episode = Episode(limit_steps)
        self._commands: tuple[str, ...] = ()
        self._inadmissible = 0

    @property
    def actions(self) -> None:
        """Commands are open text."""
        return

    @property
    def ceiling(self) -> Ceiling:
        return Ceiling(1.0, "exact: official games are kept only where they can be solved")

    @property
    def held_out_episodes(self) -> int:
        """The games that seeds go through, one after the other."""
        return len(self._games)

    def reset(self, seed: int) -> Observation:
        folder = self._games[seed % len(self._games)]
        self._game = read_game(folder)
        self._surface.json_file_list = [str(folder / TRAJECTORY_FILE)]
        with _random_kept():
            texts, infos = self._surface.reset()
        self._notes, self._inadmissible = Notes(), 0
        self._read(Exchange(None, texts[0]), infos)
        conditions = CONDITIONS[self._game.goal.task_type]
        self._paid = RewardParts(self._rule, conditions, most_met=self._met)
        self._episode.begin()
        return self.observation()

    def observation(self) -> Observation:
        return Observation(
            text=self._text,
            image=self._image,
            admissible_actions=self._commands,
            state_key=f"{self._game.folder} {self._path!r}",
            goal=self._notes.goal,
            task_type=self._game.goal.task_type.label,
        )

    def step(self, action: str) -> Transition:
        self._episode.require_open()
        admissible = action.strip() in self._commands
        if admissible:
            with _random_kept():
                texts, _, _, infos = self._surface.step([action.strip()])
            self._read(Exchange(action.strip(), texts[0]), infos)
        else:
            self._inadmissible += 1
            self._text = NOTHING_HAPPENS
            self._notes = self._notes.after(Exchange(action, NOTHING_HAPPENS))
            self._path = (*self._path, None)
        reward = self._paid.pay(met=self._met, won=self._won, admissible=admissible)
        return self._episode.record(reward, terminated=self._won)

    def legal_actions(self) -> tuple[str, ...]:
        return () if self._episode.is_over else self._commands

    def expert(self) -> ExpertAction:
        self._episode.require_open()
        return advise(self._game.goal, self._notes, self._commands)

    def thought_facts(self, response: str) -> ThoughtFacts:
        return alfworld_facts(
            response, goal=self._game.goal, notes=self._notes, commands=self._commands
        )

    def prompter(self, response_format: ResponseFormat, wording: Wording) -> Prompter:
        return ALFWorldPrompter(response_format, wording)

    @property
    def summarize(self) -> Summarize:
        return alfworld_summary

    def success(self) -> bool:
        return self._won

    def metrics(self) -> tuple[Metric, ...]:
        return (
            Metric("progress", self._met / self._paid.conditions),
            Metric("goal_reward", self._paid.goal),
            Metric("progress_reward", self._paid.progress),
            Metric("penalty", self._paid.penalty),
            Metric("inadmissible", float(self._inadmissible)),
            Metric("official", float(self._game.is_official)),
        )

    def render(self) -> Image:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._image

    def close(self) -> None:
        self._surface.close()

    def _read(self, exchange: Exchange, infos: dict[str, Any]) -> None:
        """Takes in what the simulator said."""
        self._path = () if exchange.action is None else (*self._path, exchange.action)
        self._text = exchange.text
        self._notes = self._notes.after(exchange)
        self._commands = tuple(sorted(set(infos["admissible_commands"][0])))
        self._won = bool(infos["won"][0])
        share = float(infos["goal_condition_success_rate"][0])
        self._met = round(share * CONDITIONS[self._game.goal.task_type])
        self._image = to_image(self._surface.get_frames()[0], self._size)


def to_image(frame: Any, size: int) -> Image:
    """A frame in blue, green, red as an image in red, green, blue, read-only.

    Raises:
        ValueError: it is no uint8 [height, width, 3].
    """
    pixels = np.asarray(frame)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise ValueError(
            f"got a frame of {pixels.dtype} {pixels.shape} — expected uint8 [height, width, 3]"
        )
    image = np.ascontiguousarray(pixels[..., ::-1])
    if image.shape[:2] != (size, size):
        resized = Pillow.fromarray(image).resize((size, size), Pillow.Resampling.BILINEAR)
        image = np.array(resized)
    image.flags.writeable = False
    return image


def start_thor(root: Path) -> ThorSurface:
    """The package's own environment, in a batch of one, with the controller that sees all.

    Raises:
        MissingDependencyError: AI2-THOR or what the package needs for it is not installed.
    """
    try:
        module = import_alfworld("alfworld.agents.environment.alfred_thor_env")
    except ImportError as error:
        raise MissingDependencyError(
            f"AI2-THOR's frames need {error.name}, not installed — run: "
            "pip install ai2thor opencv-python; a display is needed, too"
        ) from error
    return module.AlfredThorEnv(thor_settings(root), train_eval="train").init_env(batch_size=1)


def thor_settings(root: Path) -> dict[str, Any]:
    """What the package reads from its own configuration file."""
    trees = {"data_path": "train", "eval_id_data_path": "valid_seen"}
    trees["eval_ood_data_path"] = "valid_unseen"
    return {
        "dataset": {
            **{key: str(root / "json_2.1.1" / split) for key, split in trees.items()},
            "num_train_games": -1,
            "num_eval_games": -1,
        },
        "env": {
            "task_types": [1, 2, 3, 4, 5, 6],
            "goal_desc_human_anns_prob": 0,
            "thor": {
                "screen_width": FRAME_SIZE,
                "screen_height": FRAME_SIZE,
                "smooth_nav": False,
                "save_frames_to_disk": False,
                "save_frames_path": "",
            },
        },
        "controller": {"type": "oracle", "debug": False, "load_receps": True},
    }


@contextmanager
def _random_kept() -> Generator[None]:
    """The package draws tasks and wordings from the global generator: from one state, always."""
    state = random.getstate()
    random.setstate(random.Random(0).getstate())
    try:
        yield
    finally:
        random.setstate(state)
