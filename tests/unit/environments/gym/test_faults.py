"""All that an environment of somebody else's, or an option, can do wrong is one line."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from gymnasium import spaces

from forethought.environments import make_environment
from forethought.environments.check import prove
from forethought.environments.gym.calling import calling
from forethought.environments.gym.knowledge import value_names
from forethought.environments.gym.words import can_be_said, in_words, observation_problem
from forethought.environments.slots import Act, Failed, Reset, SlotHost
from forethought.errors import (
    ConfigError,
    EnvironmentUnusableError,
    ForethoughtError,
    MissingDependencyError,
)
from forethought.types import EnvironmentFailure

FAULTY = f"gym:{__package__}.faulty:Faulty-v0"
CORRIDOR = f"gym:{__package__}.strange:Corridor-v0"
BOX = {"space": "box"}


def refusal(name: str, **options: Any) -> ForethoughtError:
    """The error with which a run would end before it begins."""
    with pytest.raises(ForethoughtError) as caught:
        prove(name, partial(make_environment, name, **options))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    return caught.value


@pytest.mark.parametrize(
    ("name", "options", "line"),
    [
        pytest.param(
            "gym:FrozenLake-v1",
            {"map_name": "9x9"},
            "gym:FrozenLake-v1: make(map_name='9x9') raised KeyError: '9x9' — expected an "
            "environment; correct environment.options",
            id="no such map",
        ),
        pytest.param(
            "gym:FrozenLake-v1", {"desc": "abc"}, "make(desc='abc') raised ValueError: ", id="desc"
        ),
        pytest.param(
            CORRIDOR,
            {**BOX, "bins": "abc"},
            f"bins is 'abc' — expected a whole number from 2 to 1000: {CORRIDOR} has Box(",
            id="bins: text",
        ),
        pytest.param(CORRIDOR, {**BOX, "bins": 2.5}, "bins is 2.5 — expected", id="bins: 2.5"),
        pytest.param(CORRIDOR, {**BOX, "bins": 1}, "bins is 1 — expected", id="bins: one"),
        pytest.param(CORRIDOR, {**BOX, "bins": True}, "bins is True — expected", id="bins: true"),
        pytest.param(
            CORRIDOR,
            {**BOX, "bins": 10**9},
            "bins is 1000000000 — expected a whole number from 2 to 1000",
            id="bins: too many",
        ),
        pytest.param(
            CORRIDOR,
            {"bins": 11},
            f"bins is 11 — expected none: {CORRIDOR} has Discrete(2, start=1)",
            id="bins: numbered actions",
        ),
        pytest.param(
            CORRIDOR,
            {"success_above": "abc"},
            "success_above is 'abc' — expected a number",
            id="success_above: text",
        ),
        pytest.param(
            CORRIDOR,
            {"success_above": float("nan")},
            "success_above is nan — expected a number",
            id="success_above: NaN",
        ),
        pytest.param(
            CORRIDOR,
            {"actions": "left,right,right"},
            "actions is 'left,right,right' — expected 2 different names",
            id="actions: one twice",
        ),
        pytest.param(
            FAULTY,
            {"fault": "many actions"},
            "has 1000000000 actions — expected at most 1000",
            id="too many actions",
        ),
    ],
)
def test_an_option(name: str, options: dict[str, Any], line: str) -> None:
    error = refusal(name, **options)
    assert isinstance(error, ConfigError)
    assert line in str(error)


def test_bins_whose_names_would_be_equal() -> None:
    """The values of 1,000,000 to 1,000,001 are all written 1e+06."""
    with pytest.raises(ConfigError, match="bins is 3 — expected fewer"):
        value_names("gym:X-v0", spaces.Box(1e6, 1e6 + 1, (1,)), 3)


def test_a_space_that_has_no_words_is_no_fault() -> None:
    """Seen as an image, its environment can be played."""
    space = spaces.Graph(spaces.Discrete(3), spaces.Discrete(2))
    graph = space.sample()
    assert observation_problem(space, graph) is None
    assert in_words(space, graph) == ""
    assert not can_be_said(space)


PAIR = "expected a pair, observation and info"
FIVE = "expected observation, reward, terminated, truncated, info"
IMAGE = "expected uint8 [height, width, 3], not empty; or take view=text"


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        ("constructor", "make(fault='constructor') raised ValueError: no such map lines lines"),
        ("file", "raised FileNotFoundError: [Errno 2] No such file or directory: 'map.txt' — "),
        ("no action space", "its action_space is None — expected a space of gymnasium.spaces"),
        ("reset", f"reset(seed=0) raised ValueError: no level — {PAIR}"),
        ("reset says nothing", f"reset(seed=0) raised ValueError — {PAIR}"),
        ("old reset", "reset(seed=0) gave {'count': 0, "),
        (
            "no observation",
            "reset(seed=0): the observation is None — expected a dict of count, note, ",
        ),
        ("no key", "reset(seed=0): the observation has no 'wind' — expected count, note, "),
        ("None inside", "the observation['count'] is None — expected Discrete(5)"),
        ("NaN", "reset(seed=0): the observation['wind'] is array([ 0., nan]"),
        ("NaN later", "step(1): the observation['wind'] is array([ 0., nan]"),
        ("another shape", "the observation['wind'] is array([0., 0., 0.]) — expected Box("),
        ("no text", "the observation['note'] is 7 — expected a text"),
        ("no pair", "the observation['pair'] is (0,) — expected a tuple of 2"),
        ("step", f"raised ValueError: no floor — {FIVE}"),
        ("old step", f"not enough values to unpack (expected 5, got 4) — {FIVE}"),
        ("no reward", "raised TypeError: float() argument must be"),
    ],
)
def test_a_fault_of_the_environment(fault: str, line: str) -> None:
    message = str(refusal(FAULTY, fault=fault))
    assert message.startswith(f"{FAULTY}: ")
    assert re.sub(r"step\([01]\)", "step(1)", message).count(line) == 1, message


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        ("render", f"{FAULTY}: render() raised OSError: no display — {IMAGE}"),
        ("empty image", f"{FAULTY}: render() gave uint8 [0, 40, 3] — {IMAGE}"),
        ("list of images", f"{FAULTY}: render() gave [array([[["),
    ],
)
def test_a_fault_of_what_is_rendered(fault: str, line: str) -> None:
    assert str(refusal(FAULTY, fault=fault, view="image")).startswith(line)


def test_what_closing_raises_concerns_nobody() -> None:
    assert prove(FAULTY, partial(make_environment, FAULTY, fault="close")).startswith(FAULTY)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("def (:\n", "import broken_home raised SyntaxError: "),
        ("raise OSError('no licence')\n", "import broken_home raised OSError: no licence — "),
        ("raise ModuleNotFoundError('by hand')\n", "raised ModuleNotFoundError: by hand"),
        ("import absent_engine.core\n", "needs absent_engine, not installed — run: pip install"),
    ],
)
def test_a_module_that_cannot_be_imported(
    source: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_home.py").write_text(source, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert line in str(refusal("gym:broken_home:X-v0"))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("gym:.x:X-v0", "import .x raised TypeError: the 'package' argument is required"),
        ("gym:GymV21Environment-v0", "make() raised ImportError: "),
        (f"gym:{__package__}.faulty:NoClass-v0", "make() raised AttributeError: "),
        ("gym:no version!", "make() raised Error: Malformed environment ID"),
        ("gym:", "make() raised Error: Malformed environment ID"),
    ],
)
def test_an_id_that_leads_to_nothing(name: str, line: str) -> None:
    assert line in str(refusal(name))


def test_a_step_that_raises_loses_the_episode_by_name() -> None:
    host = SlotHost(partial(make_environment, FAULTY, fault="step"), with_expert=False)
    host.execute(0, Reset(7))
    lost = host.execute(0, Act("1"))
    assert isinstance(lost, Failed)
    assert lost.failure is EnvironmentFailure.CRASH
    assert lost.message.startswith("seed 7, step 1: ")
    assert f"{FAULTY}: step(1) raised ValueError: no floor" in lost.message


def test_a_simulator_that_is_silent_is_a_timeout() -> None:
    host = SlotHost(partial(make_environment, FAULTY, fault="silence"), with_expert=False)
    host.execute(0, Reset(7))
    lost = host.execute(0, Act("1"))
    assert isinstance(lost, Failed)
    assert lost.failure is EnvironmentFailure.TIMEOUT


def test_the_cause_is_kept() -> None:
    error = refusal(FAULTY, fault="reset")
    assert isinstance(error, EnvironmentUnusableError)
    assert isinstance(error.__cause__, ValueError)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_who_ends_the_process_is_not_held(kind: type[BaseException]) -> None:
    with pytest.raises(kind), calling("gym:X-v0", "reset(seed=0)", PAIR):
        raise kind


def test_an_exception_whose_text_raises() -> None:
    class SilentError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    with (
        pytest.raises(EnvironmentUnusableError, match=r"render\(\) raised SilentError — expected"),
        calling("gym:X-v0", "render()", IMAGE),
    ):
        raise SilentError


def test_a_package_is_named_with_the_command_that_installs_it() -> None:
    with (
        pytest.raises(MissingDependencyError, match=r'run: pip install "forethought\[minigrid\]"'),
        calling("gym:X-v0", "make()", "expected an environment"),
    ):
        raise ModuleNotFoundError("no minigrid", name="minigrid.core")
