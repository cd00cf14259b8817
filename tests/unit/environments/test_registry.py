"""Environments are found by any sensible name, and refused in one helpful line."""

import inspect
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest
from gymnasium.envs import registration

from forethought.environments import (
    EnvironmentSpec,
    find_environment,
    is_installed,
    list_environments,
    make_environment,
    register_environment,
    registry,
)
from forethought.environments.cards.number_line import NumberLine
from forethought.errors import ConfigError, MissingDependencyError, UnknownNameError
from tests.skips import needs

SHIPPED = ["NumberLine", "EZPoints", "Points24", "Blackjack", "Bandit"]


@pytest.mark.parametrize(
    "name",
    ["NumberLine", "numberline", "forethought/NumberLine-v0", "FORETHOUGHT/numberline-V0"],
)
def test_names_may_be_short_or_full_in_any_case(name: str) -> None:
    assert find_environment(name).id == "forethought/NumberLine-v0"
    assert isinstance(make_environment(name, image_size=64), NumberLine)


def test_all_shipped_environments_are_listed_in_order() -> None:
    names = [spec.name for spec in list_environments()]
    assert [name for name in names if name in SHIPPED] == SHIPPED
    assert all(is_installed(find_environment(name)) for name in SHIPPED)


def test_an_unknown_name_gets_the_nearest_and_the_list() -> None:
    with pytest.raises(UnknownNameError) as error:
        make_environment("Point24")
    assert str(error.value).startswith(
        "unknown environment 'Point24' — did you mean Points24 or EZPoints? known: NumberLine, "
    )
    with pytest.raises(UnknownNameError, match=r"unknown environment 'qqqq' — known: "):
        make_environment("qqqq")


def test_your_own_environment_needs_no_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    environment = make_environment("troublesome_environment:FaultyEnvironment", mood="cheerful")
    assert environment.reset(7).state_key == "7"
    with pytest.raises(ConfigError, match=r"has no option moon='full' — it has: mood"):
        make_environment("troublesome_environment:FaultyEnvironment", moon="full")
    with pytest.raises(
        UnknownNameError, match="module troublesome_environment has no 'Environment'"
    ):
        make_environment("troublesome_environment:Environment")
    with pytest.raises(UnknownNameError, match="module no_such_package does not exist"):
        make_environment("no_such_package.environments:Environment")


class Halfway:
    """Has some of what an environment needs."""

    actions = ("go",)

    def __init__(self, size: int) -> None:
        self.size = size

    def reset(self, seed: int) -> None: ...


def test_a_class_that_lacks_members_is_told_which() -> None:
    name = f"{__name__}:Halfway"
    with pytest.raises(ConfigError) as error:
        make_environment(name, size=3)
    missing = "observation, step, legal_actions, success, metrics, close"
    assert str(error.value).startswith(f"{name} lacks {missing} — ")
    with pytest.raises(ConfigError) as error:
        make_environment(name)
    assert str(error.value).startswith(f"{name} cannot be built: missing a required argument")


@pytest.fixture
def scratch_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a test register environments that nobody else sees."""
    monkeypatch.setattr(registry, "_specs", dict(vars(registry)["_specs"]))
    monkeypatch.setattr(registration, "registry", dict(gymnasium.registry))
    monkeypatch.setattr(gymnasium, "registry", registration.registry)


def spec_of_a_stranger(entry_point: str = "nowhere:Environment") -> EnvironmentSpec:
    return EnvironmentSpec(
        id="forethought/Stranger-v0",
        entry_point=entry_point,
        summary="Needs what is not there.",
        observation="text",
        actions="none",
        reward="none",
        success="never",
        extra="strange",
        required_modules=("no_such_module", "sys"),
    )


@pytest.mark.usefixtures("scratch_registry")
def test_a_missing_extra_is_one_line_with_the_command() -> None:
    register_environment(spec_of_a_stranger())
    register_environment(spec_of_a_stranger())  # the same again is no mistake
    assert not is_installed(find_environment("stranger"))
    with pytest.raises(MissingDependencyError) as error:
        make_environment("Stranger")
    assert str(error.value) == (
        'Stranger needs no_such_module, not installed — run: pip install "forethought[strange]"'
    )
    with pytest.raises(ConfigError, match="registered already, for nowhere:Environment"):
        register_environment(spec_of_a_stranger("elsewhere:Environment"))


@pytest.mark.parametrize("name", [spec.id for spec in list_environments()])
def test_documented_options_are_the_constructor_s(name: str) -> None:
    spec = find_environment(name)
    if not is_installed(spec):
        pytest.skip(needs(f"what {spec.id} needs", f'pip install "forethought[{spec.extra}]"'))
    module, _, attribute = spec.entry_point.partition(":")
    environment = getattr(sys.modules.get(module) or __import__(module, fromlist=["_"]), attribute)
    parameters = inspect.signature(environment).parameters.values()
    assert [(p.name, p.default) for p in parameters] == [
        (option.name, option.default) for option in spec.options
    ]
    assert spec.summary.endswith(".")
    assert "\n" not in spec.summary


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("NumberLine", {"color": 1}, "NumberLine has no option color=1 — it has: rules, "),
        ("NumberLine", {"rules": "house"}, "rules is 'house' — expected paper, reference"),
        ("NumberLine", {"image_size": 47}, "image_size is 47 — expected a whole number from 48"),
        ("NumberLine", {"image_size": 64.0}, "image_size is 64.0 — expected a whole number"),
        ("NumberLine", {"max_position": True}, "max_position is True — expected a whole number"),
        ("NumberLine", {"max_position": 0}, "max_position is 0 — expected"),
        ("EZPoints", {"rules": None}, "rules is None — expected paper or reference"),
        ("EZPoints", {"image_size": 2000}, "image_size is 2000 — expected"),
        ("Points24", {"faces_as_ten": "yes"}, "faces_as_ten is 'yes' — expected True or False"),
        ("Points24", {"deals": "new"}, "deals is 'new' — expected all, seen or unseen"),
        ("Points24", {"image_size": "64"}, "image_size is '64' — expected"),
        ("Blackjack", {"natural": 1}, "natural is 1 — expected True or False"),
        ("Bandit", {"arms": 1}, "arms is 1 — expected a whole number from 2 to 26"),
    ],
)
def test_a_wrong_option_is_refused(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        make_environment(name, **options)
    assert message in str(error.value)


def test_listing_imports_neither_environments_nor_torch() -> None:
    script = (
        "import sys, forethought.environments as e; e.list_environments(); "
        "print([m for m in sys.modules if m == 'torch' or '.cards.' in m])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"
