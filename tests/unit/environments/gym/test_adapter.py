"""Any Gymnasium environment by its id: what becomes words, and what is refused."""

import importlib.util
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forethought.environments import make_environment
from forethought.environments.check import check_environment, prove
from forethought.environments.contract import WithExpert, ceiling_of
from forethought.errors import (
    ConfigError,
    EnvironmentUnusableError,
    MissingDependencyError,
    UnknownNameError,
)
from forethought.prompts.prompters import make_prompter

HOME = "tests.unit.environments.gym.strange"
CORRIDOR = f"gym:{HOME}:Corridor-v0"


def test_numbers_become_words_and_a_mission_the_goal() -> None:
    corridor = make_environment(CORRIDOR)
    seen = corridor.reset(0)
    assert seen.goal == "go right"
    assert seen.text is not None
    assert seen.text.splitlines()[1] == "wind: 0.25 -0.5"
    assert seen.text.startswith("cell: ")
    assert corridor.actions == ("1", "2")
    assert not isinstance(corridor, WithExpert)
    assert ceiling_of(corridor) is None


@pytest.mark.parametrize(
    ("options", "right"),
    [
        ({"actions": "left,right"}, "right"),
        ({"space": "text"}, "right"),
        ({"space": "box", "bins": 3}, "1"),
    ],
)
def test_every_space_of_actions_that_is_taken(options: dict[str, Any], right: str) -> None:
    corridor = make_environment(CORRIDOR, **options)
    corridor.reset(0)
    before = corridor.observation().state_key
    assert corridor.step("no such action") == (0.0, False, False)
    assert corridor.observation().state_key == before
    while not corridor.step(right).terminated:
        assert not corridor.success()
    assert corridor.success()
    with pytest.raises(RuntimeError, match="over"):
        corridor.step(right)


def test_success_is_a_return_above_the_threshold() -> None:
    corridor = make_environment(CORRIDOR, actions="left,right", success_above=1.5)
    corridor.reset(0)
    while not corridor.step("right").terminated:
        pass
    assert not corridor.success()


def test_texts_that_name_no_action_count_as_steps() -> None:
    corridor = make_environment(CORRIDOR, limit_steps=3)
    corridor.reset(0)
    ends = [corridor.step("?").truncated for _ in range(3)]
    assert ends == [False, False, True]


def test_what_is_rendered_is_resized_and_kept() -> None:
    corridor = make_environment(CORRIDOR, view="both", image_size=32)
    image = corridor.reset(1).image
    assert image is not None
    assert image.shape == (32, 32, 3)
    assert not image.flags.writeable
    check_environment(partial(make_environment, CORRIDOR, view="image", image_size=32), episodes=3)


@pytest.mark.parametrize(
    ("name", "options", "kind", "message"),
    [
        pytest.param(
            "gym:NoSuch-v1", {}, UnknownNameError, "gym:NoSuch-v1: .*doesn't exist", id="no such id"
        ),
        pytest.param(
            "gym:no_such_module:X-v0",
            {},
            MissingDependencyError,
            "gym:no_such_module:X-v0 needs no_such_module, not installed — run: pip install",
            id="no such module",
        ),
        pytest.param(
            "gym:ALE/Pong-v5",
            {},
            MissingDependencyError,
            "gym:ALE/Pong-v5 needs ale_py, not installed — run: pip install ale_py",
            id="an id that needs a package",
        ),
        pytest.param(
            "gym:LunarLander-v3",
            {},
            MissingDependencyError,
            "gym:LunarLander-v3: .*Box2D.*pip install",
            id="an id that needs an extra of Gymnasium's",
        ),
        pytest.param(
            CORRIDOR,
            {"space": "boxes"},
            ConfigError,
            r"action space Box\(-1.0, 1.0, \(3,\), float32\) — expected Discrete or Text",
            id="a continuous space",
        ),
        pytest.param(CORRIDOR, {"space": "multi"}, ConfigError, "MultiDiscrete", id="two at once"),
        pytest.param(CORRIDOR, {"space": "box"}, ConfigError, "bins=11", id="no bins"),
        pytest.param(
            CORRIDOR,
            {"view": "image", "pixels": "none"},
            ConfigError,
            r"render\(\) gave None — expected uint8 \[height, width, 3\], not empty; or",
            id="nothing rendered",
        ),
        pytest.param(
            CORRIDOR,
            {"view": "image", "pixels": "floats"},
            ConfigError,
            r"gave float64 \[8, 8, 3\]",
            id="floats rendered",
        ),
        pytest.param(
            CORRIDOR,
            {"colour": "red"},
            ConfigError,
            r"make\(colour='red'\) raised TypeError: .*'colour'",
            id="no such option",
        ),
        pytest.param(
            CORRIDOR,
            {"actions": "a,b,c"},
            ConfigError,
            "actions is 'a,b,c' — expected 2 different names",
            id="too many names",
        ),
        pytest.param(
            CORRIDOR,
            {"template": "{goal} {secret}"},
            ConfigError,
            r"template has \{secret\} — expected \{goal\}, \{text\}, \{actions\}, \{fields\}",
            id="a place that nothing fills",
        ),
        pytest.param(
            CORRIDOR, {"template": "nowhere.txt"}, ConfigError, "nowhere.txt", id="no such file"
        ),
    ],
)
def test_refused_in_one_line(
    name: str, options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message) as error:
        make_environment(name, **options)
    assert "\n" not in str(error.value)


def test_an_image_of_another_size_is_refused() -> None:
    corridor = make_environment(CORRIDOR, view="image", pixels="growing")
    corridor.reset(0)
    message = r"gave uint8 \[10, 16, 3\] — expected uint8 \[9, 16, 3\]"
    with pytest.raises(ConfigError, match=message):
        corridor.step("2")


def test_the_template_is_filled_once(tmp_path: Path) -> None:
    """Braces in an observation are text, not places."""
    file = tmp_path / "wording.txt"
    file.write_text("Task: {goal}\n{text}\nChoose: {actions} {fields}\n", "utf-8")
    corridor = make_environment(CORRIDOR, actions="left,right", template=str(file))
    seen = corridor.reset(2)
    (message,) = make_prompter(corridor).messages(seen)
    assert message.text == (
        f'Task: go right\n{seen.text}\nChoose: left, right {{"thoughts", "action"}}'
    )
    (short,) = make_prompter(corridor, response_format="action_only").messages(seen)
    assert short.text.endswith('{"action"}')


def test_proved_before_a_run() -> None:
    line = prove(CORRIDOR, partial(make_environment, CORRIDOR))
    assert line.startswith(f"{CORRIDOR}: 2 episodes replayed on a second copy, step by step equal")
    assert line.endswith(
        "; warning: state_key is made of the observation alone, so GiGPO takes states that look "
        "alike for the same"
    )
    strange = f"gym:{HOME}:Forgetful-v0"
    with pytest.raises(EnvironmentUnusableError, match="cannot be trained on") as error:
        prove(strange, partial(make_environment, strange))
    assert "\n" not in str(error.value)


def test_a_key_of_the_whole_state_needs_no_warning() -> None:
    line = prove("gym:FrozenLake-v1", partial(make_environment, "gym:FrozenLake-v1"))
    assert line.endswith("step by step equal; all seeds start alike")


# The environments that are known by more than their spaces.


def toy_text(name: str, **options: Any) -> Any:
    if importlib.util.find_spec("pygame") is None and options.get("view", "text") != "text":
        pytest.skip("rendering needs pygame: pip install pygame-ce")
    return make_environment(name, **options)


def test_frozen_lakes_ceiling_is_that_of_a_second_computation() -> None:
    """Backward induction in plain Python over the public table: 74.42 % in 100 steps."""
    lake = toy_text("gym:FrozenLake-v1")
    table = lake._environment.unwrapped.P
    best = dict.fromkeys(table, 0.0)
    for _ in range(100):
        best = {
            state: max(
                sum(
                    chance * (reward if done else best[there])
                    for chance, there, reward, done in outcomes
                )
                for outcomes in actions.values()
            )
            for state, actions in table.items()
        }
    ceiling = ceiling_of(lake)
    assert ceiling is not None
    assert ceiling.success_rate == pytest.approx(best[0])
    assert ceiling.success_rate == pytest.approx(0.7442, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "options", "steps"),
    [
        ("gym:FrozenLake-v1", {"is_slippery": False}, 6),
        ("gym:CliffWalking-v1", {}, 13),
    ],
)
def test_experts_walk_the_shortest_way(name: str, options: dict[str, Any], steps: int) -> None:
    environment = toy_text(name, **options)
    environment.reset(0)
    taken = 1
    while not environment.step(environment.expert().action).terminated:
        taken += 1
    assert taken == steps
    assert environment.success()


def test_taxi_is_told_in_words() -> None:
    taxi = toy_text("gym:Taxi-v4")
    seen = taxi.reset(5)
    assert seen.text is not None
    assert seen.text.startswith("taxi at ")
    assert "destination" in seen.text
    taken = 0
    while not taxi.step(taxi.expert().action).terminated:
        taken += 1
    assert taken < 20
    assert taxi.success()


def test_a_random_walk_on_the_ice_rarely_arrives() -> None:
    lake = toy_text("gym:FrozenLake-v1")
    randomness, won = np.random.default_rng(0), 0
    for seed in range(300):
        lake.reset(seed)
        over = False
        while not over:
            _, terminated, truncated = lake.step(lake.actions[randomness.integers(4)])
            over = terminated or truncated
        won += lake.success()
    assert won < 20
