"""The adapter to AI2-THOR, on an object with the package's surface."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples.alfworld_thor.thor import ThorEnvironment, thor_settings, to_image

from forethought.environments.alfworld.engine import Engine
from forethought.environments.alfworld.games import read_game
from forethought.environments.alfworld.progress import CONDITIONS, conditions_met, sort_out
from forethought.environments.check import check_environment


class StandIn:
    """`AlfredThorEnv`'s surface over the text engine; its frames tell the number of steps."""

    def __init__(self) -> None:
        self.json_file_list: list[str] = []
        self.closed = False
        self._engine = Engine()

    def reset(self) -> tuple[list[str], dict[str, Any]]:
        (task,) = random.sample(self.json_file_list, k=1)
        self._game = read_game(Path(task).parent)
        self._steps = 0
        return [self._engine.start(self._game.text)], self._infos()

    def step(self, actions: list[str]) -> tuple[list[str], None, list[bool], dict[str, Any]]:
        (action,) = actions
        self._steps += 1
        reply = self._engine.step(action)
        return [reply], None, [self._engine.won], self._infos()

    def get_frames(self) -> Any:
        frame = np.zeros((1, 300, 300, 3), dtype=np.uint8)
        frame[..., 0] = 200  # blue comes first
        frame[..., 2] = self._steps
        return frame

    def close(self) -> None:
        self.closed = True

    def _infos(self) -> dict[str, Any]:
        goal = self._game.goal
        met = conditions_met(goal, sort_out(self._engine.facts()))
        return {
            "admissible_commands": [list(self._engine.commands)],
            "won": [self._engine.won],
            "goal_condition_success_rate": [met / CONDITIONS[goal.task_type]],
        }


@pytest.fixture
def environment(games: Path) -> ThorEnvironment:
    return ThorEnvironment(games=str(games), surface=StandIn(), image_size=64)


def test_the_contract(games: Path) -> None:
    check_environment(lambda: ThorEnvironment(games=str(games), surface=StandIn()), episodes=3)


def test_frames_are_turned_round(environment: ThorEnvironment) -> None:
    image = environment.reset(0).image
    assert image is not None
    assert image.shape == (64, 64, 3)
    assert image[0, 0].tolist() == [0, 0, 200]
    environment.step("look")
    later = environment.observation().image
    assert later is not None
    assert later[0, 0].tolist() == [1, 0, 200]


def test_other_frames_are_refused() -> None:
    with pytest.raises(ValueError, match="expected uint8"):
        to_image(np.zeros((300, 300), dtype=np.uint8), 64)


def test_rewards_come_from_the_simulators_progress(environment: ThorEnvironment) -> None:
    environment.reset(4)
    total = 0.0
    while not environment.success():
        total += environment.step(environment.expert().action).reward
    assert total == 53
    assert dict(environment.metrics())["progress"] == 1


def test_an_inadmissible_command_does_not_reach_the_simulator(environment: ThorEnvironment) -> None:
    environment.reset(0)
    assert environment.step("fly").reward == -1
    observation = environment.observation()
    assert observation.text == "Nothing happens."
    assert observation.image is not None
    assert observation.image[0, 0, 0] == 0, "no step was taken"


def test_the_seed_alone_decides_on_the_game(environment: ThorEnvironment) -> None:
    state = random.getstate()
    keys = [environment.reset(seed).state_key for seed in (0, 3, 0)]
    assert keys[0] == keys[2] != keys[1]
    assert random.getstate() == state


def test_closing_ends_the_simulator(games: Path) -> None:
    surface = StandIn()
    ThorEnvironment(games=str(games), surface=surface).close()
    assert surface.closed


def test_settings_have_what_the_package_reads() -> None:
    settings = thor_settings(Path("/data"))
    assert settings["dataset"]["data_path"] == "/data/json_2.1.1/train"
    assert settings["env"]["thor"]["screen_width"] == 300
    assert settings["controller"]["type"] == "oracle"
