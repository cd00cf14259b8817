"""Finding environments by name, describing them, and building them.

Nothing is imported until an environment is built, so listing is instant and needs no extra.
Besides registered names, `make_environment` takes "my_package.my_module:MyEnvironment" and
"gym:FrozenLake-v1".
"""

import difflib
import importlib
import importlib.util
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import gymnasium

from forethought.environments.contract import Environment
from forethought.environments.parts import Option
from forethought.errors import ConfigError, MissingDependencyError, UnknownNameError

NAMESPACE = "forethought/"
GYMNASIUM_PREFIX = "gym:"
"""Before the id of any environment that Gymnasium has registered."""


@dataclass(frozen=True)
class EnvironmentSpec:
    """What can be known about an environment without importing it."""

    id: str
    """As Gymnasium writes it: "forethought/Points24-v0"."""
    entry_point: str
    """Import string, "package.module:Class"."""
    summary: str
    """One line."""
    observation: str
    """What the agent is shown: "image", "text", "image and text"."""
    actions: str
    """The action strings, in words."""
    reward: str
    success: str
    """When an episode counts as a success; a separate number from the return."""
    options: tuple[Option, ...] = ()
    """Every keyword that the constructor takes."""
    extra: str | None = None
    """What to install: `pip install "forethought[extra]"`; None where the core suffices."""
    required_modules: tuple[str, ...] = ()
    """Modules of that extra, by which its presence is recognized."""
    expert: str = ""
    """Whether there is an expert, in words; the shipped ones all have one, and leave it empty."""

    @property
    def name(self) -> str:
        """The short name: "Points24"; of an environment of Gymnasium's, all of its id."""
        if self.id.startswith(GYMNASIUM_PREFIX):
            return self.id
        return self.id.removeprefix(NAMESPACE).rpartition("-v")[0]


_MEMBERS = tuple(name for name in vars(Environment) if not name.startswith("_"))
"""What the contract asks of every environment."""

_specs: dict[str, EnvironmentSpec] = {}


def register_environment(spec: EnvironmentSpec) -> None:
    """Makes an environment known here and to `gymnasium.make`. The same spec may come twice.

    Raises:
        ConfigError: another environment has this name already.
    """
    known = _specs.get(spec.name.lower())
    if known == spec:
        return
    if known is not None:
        raise ConfigError(f"environment {spec.id} is registered already, for {known.entry_point}")
    _specs[spec.name.lower()] = spec
    if spec.id not in gymnasium.registry:
        view = "forethought.environments.gymnasium_view:GymnasiumView"
        gymnasium.register(spec.id, entry_point=view, kwargs={"environment": spec.name})


def list_environments() -> tuple[EnvironmentSpec, ...]:
    """All registered environments, in the order of registration."""
    return tuple(_specs.values())


def find_environment(name: str) -> EnvironmentSpec:
    """The spec for a short or full name, in any case.

    Raises:
        UnknownNameError: no such environment; the message names the nearest and lists all.
    """
    short = name.lower().removeprefix(NAMESPACE)
    for spec in _specs.values():
        if short in (spec.name.lower(), spec.id.lower().removeprefix(NAMESPACE)):
            return spec
    nearest = difflib.get_close_matches(short, _specs, n=3)
    hint = f"did you mean {' or '.join(_specs[key].name for key in nearest)}? " if nearest else ""
    known = ", ".join(spec.name for spec in _specs.values())
    raise UnknownNameError(
        f"unknown environment {name!r} — {hint}known: {known}; and any id of Gymnasium's as "
        f"{GYMNASIUM_PREFIX}ID"
    )


def is_installed(spec: EnvironmentSpec) -> bool:
    """Whether every module that the environment needs is there; imports none of them."""
    return not _missing_modules(spec)


def make_environment(name: str, **options: Any) -> Environment:
    """Builds an environment, without any of Gymnasium's wrappers.

    Args:
        name: short or full name in any case, "package.module:Class" for your own, or
            "gym:" and an id of Gymnasium's.
        options: keywords of its constructor, such as `image_size=64`.

    Raises:
        UnknownNameError: no such environment, module or class.
        MissingDependencyError: an extra must be installed first.
        ConfigError: an option that the environment does not have, or a value it may not have.
    """
    if name.startswith(GYMNASIUM_PREFIX):
        build = _load("forethought.environments.gym.adapter:GymnasiumEnvironment", name)
        options = {"id": name.removeprefix(GYMNASIUM_PREFIX), **options}
        known = None
    elif ":" in name:
        build = _load(name, name)
        known = _keywords_of(build)
    else:
        spec = find_environment(name)
        missing = _missing_modules(spec)
        if missing:
            raise MissingDependencyError(
                f"{spec.name} needs {', '.join(missing)}, not installed — "
                f'run: pip install "forethought[{spec.extra}]"'
            )
        build = _load(spec.entry_point, name)
        known = tuple(option.name for option in spec.options)
    for option, value in options.items():
        if known is not None and option not in known:
            allowed = ", ".join(known) or "none"
            raise ConfigError(f"{name} has no option {option}={value!r} — it has: {allowed}")
    try:
        inspect.signature(build).bind(**options)
    except TypeError as error:
        raise ConfigError(
            f"{name} cannot be built: {error} — name it in environment.options"
        ) from None
    environment = build(**options)
    _require_members(environment, name)
    return cast(Environment, environment)


def _missing_modules(spec: EnvironmentSpec) -> tuple[str, ...]:
    return tuple(
        module for module in spec.required_modules if importlib.util.find_spec(module) is None
    )


def _load(entry_point: str, name: str) -> Callable[..., object]:
    module_name, _, attribute = entry_point.partition(":")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise UnknownNameError(
            f"environment {name!r}: module {error.name} does not exist"
        ) from error
    except AttributeError as error:
        raise UnknownNameError(
            f"environment {name!r}: module {module_name} has no {attribute!r}"
        ) from error


def _require_members(environment: object, name: str) -> None:
    """Refuses what cannot be played, before anything plays it.

    Raises:
        ConfigError: members of the contract are missing; the message names them.
    """
    kind = type(environment)
    # The class is asked first: a property of the instance may take long to compute.
    missing = [m for m in _MEMBERS if not hasattr(kind, m) and not hasattr(environment, m)]
    if missing:
        raise ConfigError(
            f"{name} lacks {', '.join(missing)} — an environment has {', '.join(_MEMBERS)}; "
            "examples/custom_environment.py shows one, check_environment checks yours"
        )


def _keywords_of(build: Callable[..., object]) -> tuple[str, ...] | None:
    """Keywords that a callable takes, or None where it takes any."""
    parameters = inspect.signature(build).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return tuple(parameter.name for parameter in parameters)
