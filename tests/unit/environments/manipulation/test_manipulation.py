"""The robot's rules: bins, rewards, ends, the script, and what is no number."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from forethought.environments import make_environment
from forethought.errors import ConfigError
from tests.unit.environments.manipulation.renderer import REASON, draws

if REASON is None:
    from forethought.environments.manipulation.camera import find_renderer
    from forethought.environments.manipulation.manipulation import (
        NAMES,
        Manipulation,
        parse_bins,
        to_action,
    )
    from forethought.environments.manipulation.scene import COLORS, SHAPES
    from forethought.environments.manipulation.script import Decision
    from forethought.environments.manipulation.simulator import (
        CrashedSimulationError,
        Looks,
        Placed,
        Simulator,
    )

pytestmark = draws

REST = "b127b127b127b127b127b127b000b000"


def play(environment: "Manipulation", seed: int) -> list[float]:
    """The script's episode; its rewards."""
    environment.reset(seed)
    rewards: list[float] = []
    while True:
        reward, terminated, truncated = environment.step(environment.expert().action)
        rewards.append(reward)
        assert environment.success() is (reward == 1.0)  # A bool, also while the object hangs.
        if terminated or truncated:
            return rewards


@pytest.mark.parametrize(
    ("text", "bins"),
    [
        ("b000b001b002b003b004b005b006b255", (0, 1, 2, 3, 4, 5, 6, 255)),
        (" b000 b001 b002 b003 b004 b005 b006 b255 ", (0, 1, 2, 3, 4, 5, 6, 255)),
        pytest.param("b000b001b002b003b004b005b006b256", None, id="no bin"),
        pytest.param("b000b001b002b003b004b005b006", None, id="seven"),
        pytest.param("b000b001b002b003b004b005b006b007b008", None, id="nine"),
        pytest.param("b000b001b002b003b004b005b006b0٣7", None, id="another alphabet's digit"),
        ("", None),
    ],
)
def test_bins(text: str, bins: tuple[int, ...] | None) -> None:
    assert parse_bins(text) == bins


def test_a_decision_in_bins() -> None:
    decision = Decision(np.array([-1.0, 0.0, 1.0]), 0.5, True, "", gives_up=True)
    assert to_action(decision) == "b000b128b255b128b128b191b255b255"


def test_the_script_picks() -> None:
    environment = Manipulation(image_size=48)
    for seed in range(6):
        assert play(environment, seed)[-1] == 1.0
        assert environment.success()


def test_the_script_places() -> None:
    environment = Manipulation("place_near", image_size=48)
    rewards = play(environment, 0)
    assert rewards[-1] == 1.0
    assert sum(rewards) == 1.0


def test_what_is_no_action_moves_nothing_and_costs_a_step() -> None:
    environment = Manipulation(image_size=48, limit_steps=10)
    before = environment.reset(0)
    for _ in range(9):
        assert environment.step("up") == (0.0, False, False)
        assert environment.observation() is before
    assert environment.step("up") == (0.0, False, True)
    assert dict(environment.metrics())["not_actions"] == 10


def test_the_agent_may_end_the_episode() -> None:
    environment = Manipulation(image_size=48)
    environment.reset(0)
    assert environment.step(REST[:-1] + "0") == (0.0, False, False)
    assert environment.step(REST.replace("b000b000", "b000b127")) == (0.0, False, False)
    assert environment.step(REST.replace("b000b000", "b000b128")) == (0.0, True, False)
    assert not environment.success()
    assert dict(environment.metrics())["gave_up"] == 1.0


def test_axes() -> None:
    """A whole bin's shift moves the gripper by 5 cm, and closing closes it."""
    simulator = Simulator(48)
    simulator.reset(tuple(_three()), Looks())
    start = simulator.grip
    for _ in range(4):
        simulator.move(np.array([0.05, 0.0, 0.0]), np.zeros(3), 1.0)
    for _ in range(6):
        simulator.move(np.zeros(3), np.array([0.0, 0.0, 0.1]), 0.0)
    assert simulator.grip - start == pytest.approx([0.2, 0.0, 0.0], abs=0.004)
    assert simulator.yaw == pytest.approx(0.6)
    assert simulator.opening < 0.05


@pytest.mark.parametrize("shape", list(SHAPES) if REASON is None else [])
def test_shapes_stand_still(shape: str) -> None:
    simulator = Simulator(48)
    simulator.reset(tuple(_three(shape)), Looks())
    for _ in range(10):
        simulator.move(np.zeros(3), np.zeros(3), 1.0)
    expected = [0.1, 0.05, SHAPES[shape].rest]
    assert simulator.object_at(0) == pytest.approx(expected, abs=0.003)
    assert simulator.object_yaw(0) == pytest.approx(0.4, abs=0.1)


@pytest.mark.parametrize("part", ["qpos", "qvel"])
def test_a_state_that_is_no_number_is_a_crash(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """An error, and neither words of MuJoCo's own nor its file in the working directory."""
    monkeypatch.chdir(tmp_path)
    environment = Manipulation(image_size=48)
    environment.reset(0)
    getattr(environment._simulator.data, part)[0] = np.nan
    with pytest.raises(CrashedSimulationError, match="expected a number"):
        environment.step(REST)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_images_show_what_is_there() -> None:
    """The asked-for colors are in the image, and randomization changes it."""
    environment = Manipulation(image_size=64)
    observation = environment.reset(3)
    assert observation.image is not None
    assert observation.image.shape == (64, 64, 3)
    assert observation.goal.startswith("pick up the ")
    color, _, _ = observation.goal.removeprefix("pick up the ").partition(" ")
    apart = np.abs(observation.image / 255 - np.array(COLORS[color])).sum(axis=2)
    assert apart.min() < 0.5
    other = Manipulation(image_size=64, randomize=True).reset(3)
    assert not np.array_equal(observation.image, other.image)


def test_equal_skill_equal_seed_equal_episode() -> None:
    environment = Manipulation(image_size=48)
    texts: list[list[str]] = []
    for _ in range(2):
        environment.reset(5)
        answer = environment.data_policy(0.4, np.random.default_rng(1))
        texts.append([])
        for _ in range(5):
            texts[-1].append(answer().action)
            environment.step(texts[-1][-1])
    assert texts[0] == texts[1]


def test_the_data_policy_without_errors_picks() -> None:
    environment = Manipulation(image_size=48)
    environment.reset(2)
    answer = environment.data_policy(1.0, np.random.default_rng(0))
    ended = False
    while not ended:
        _, terminated, truncated = environment.step(answer().action)
        ended = terminated or truncated
    assert environment.success()


def test_the_sample_of_legal_actions() -> None:
    environment = Manipulation(image_size=48)
    environment.reset(0)
    sample = environment.legal_actions()
    assert len(set(sample)) == 32
    assert environment.expert().action == sample[-1]
    assert all((bins := parse_bins(one)) and bins[7] < 128 for one in sample)
    assert environment.legal_actions() == sample


@pytest.mark.parametrize(
    "options", [{"task": "pour"}, {"limit_steps": 5}, {"image_size": 8}, {"randomize": 1}]
)
def test_refused_options(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        make_environment("Manipulation", **options)


def test_names() -> None:
    assert (NAMES[0], NAMES[7], NAMES[255]) == ("b000", "b007", "b255")


def test_one_line_where_nothing_draws() -> None:
    """One line that says what to install, and no traceback."""
    code = (
        "import ctypes.util, sys\n"
        "sys.modules['mujoco.egl'] = sys.modules['mujoco.osmesa'] = None\n"
        "from forethought.cli.entry import main\n"
        "sys.argv = ['forethought', 'play', 'Manipulation']\n"
        "sys.exit(main())\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "MUJOCO_GL"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 2
    assert "EGL or OSMesa" in done.stderr
    assert "apt-get install" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("renderer", ["osmesa", "egl", "nonsense"])
def test_states_need_no_renderer(renderer: str) -> None:
    """MUJOCO_GL may name a renderer that is not there, or none: MuJoCo itself would not load."""
    others = {name: value for name, value in os.environ.items() if name != "PYOPENGL_PLATFORM"}
    done = subprocess.run(
        [sys.executable, "-m", "forethought", "play", "Manipulation", "--options", "view=state"],
        capture_output=True,
        text=True,
        input="q\n",
        env={**others, "MUJOCO_GL": renderer},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_renderer_is_one_of_two() -> None:
    assert find_renderer().name in ("egl", "osmesa")


def _three(shape: str = "cube") -> list["Placed"]:
    return [
        Placed(shape, "red", 0.1, 0.05, 0.4),
        Placed("cube", "green", -0.1, 0.05, 0.0),
        Placed("ball", "blue", 0.0, 0.15, 0.0),
    ]
